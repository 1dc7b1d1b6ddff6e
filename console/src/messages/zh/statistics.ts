import type { statisticsEn } from "../en/statistics.ts";

export const statisticsZh: Record<keyof typeof statisticsEn, string> = {
  "task.part.statistics": "统计",
  "statistics.title": "历史趋势",
  "statistics.by": "统计粒度",
  "statistics.by.hour": "按小时",
  "statistics.by.day": "按天",
  "statistics.by.month": "按月",
  "statistics.none": "暂无统计",
  "statistics.noneTold": "从第一次运行结束起开始统计，保留 400 天。",
  "statistics.ends": "已结束的运行",
  "statistics.lines": "彩色线为半数运行，其余为 90% 和 99%",
  "statistics.until": "耗时统计至",
  "statistics.utc": "天和月以世界协调时起算",
  "statistics.from": "起始",
  "statistics.success": "成功率",
  "statistics.worse": "最近 24 小时比之前 14 天变差",
  "statistics.worse.took": "半数运行耗时超过 {is}，此前为 {was}。",
  "statistics.worse.late": "半数运行延迟超过 {is}，此前为 {was}。",
  "statistics.worse.failed": "{is} 的运行失败，此前为 {was}。",
};
