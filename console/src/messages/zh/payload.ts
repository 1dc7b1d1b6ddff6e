import type { payloadEn } from "../en/payload.ts";

export const payloadZh: Record<keyof typeof payloadEn, string> = {
  "payload.form": "表单",
  "payload.add": "添加到 {name}",
  "payload.without": "移除 {name} {n}",
  "refusal.PAYLOAD_INVALID": "载荷不符合任务的要求。",
  "payload.missing": "此项必填。",
};
