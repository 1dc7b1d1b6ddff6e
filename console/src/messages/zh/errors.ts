import type { errorsEn } from "../en/errors.ts";

export const errorsZh: Record<keyof typeof errorsEn, string> = {
  "errors.title": "按原因分组的错误",
  "errors.since": "自",
  "errors.forgotten": "原因已不再保存。",
  "errors.moreTasks": "等 {n} 个其他任务",
  "errors.first": "首次",
  "errors.last": "最近",
  "errors.broughtBy": "始于发布版本 {release}",
  "errors.trend": "前半段时间失败 {before} 次，后半段 {after} 次",
};
