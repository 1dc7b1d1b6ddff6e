import type { payloadEn } from "../en/payload.ts";

export const payloadZh: Record<keyof typeof payloadEn, string> = {
  "payload.form": "表单",
  "payload.add": "添加到 {name}",
  "payload.without": "移除 {name} {n}",
  "refusal.PAYLOAD_INVALID": "载荷不符合任务的要求。",
  "payload.missing": "此项必填。",
  "payload.from": "载荷来源",
  "payload.ofSchedule": "此任务的调度",
  "payload.ofNone": "无：重新填写",
  "payload.ofRun": "运行 {run}",
  "payload.schedules": "此任务的其他调度",
  "payload.runs": "运行",
  "refusal.PAYLOAD_OUTSIDE": "此载荷已加密或存放在存储之外，无法在此取用。",
};
