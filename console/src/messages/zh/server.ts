/**
 * The Chinese translations of short English sentences that the server sends: why a slot is skipped or moved, and why a session or
 * a leadership term ended. Sentences that are not in this list, for example those of a newer server, stay in English.
 */
const sentences: readonly [RegExp, string][] = [
  [/\bskipped: /g, "跳过："],
  [/\bmissed: its own time has passed/g, "错过：自身的时刻已过"],
  [/\bmoved to a time that has passed/g, "移到的时刻已过"],
  [/\bcalendar (\S+): (\S+) is a holiday/g, "日历 $1：$2 是假日"],
  [/\bcalendar (\S+): (\S+) is weekend \(\w+\)/g, "日历 $1：$2 是周末"],
  [/\bcalendar (\S+): (\S+) is a working day/g, "日历 $1：$2 是工作日"],
  [/, and no other day is within (\d+) days/g, "，且 $1 天内没有其他日子"],
  [/\bcalendar (\S+): moved from ([^;]+)/g, "日历 $1：由 $2 移来"],
  [/\bblackout (.+?) to (.+?): it would be delayed by more than a year/g, "停运时段 $1 至 $2：将推迟一年以上"],
  [/\bblackout (.+?) to (.+?): delayed/g, "停运时段 $1 至 $2：已推迟"],
  [/\bblackout (.+?) to ([^;]+)/g, "停运时段 $1 至 $2"],
  [/^silent for (\d+) ms, seen by (.+)$/, "静默 $1 毫秒，由 $2 发现"],
  [/^silent while its name was wanted again$/, "静默，其名称被再次使用"],
  [/^silent while another that differs was to join$/, "静默，设置不同的节点要加入"],
  [/^not shown by (.+?) any more, seen by (.+)$/, "$1 不再显示它，由 $2 发现"],
  [/^deposed: another is first in line$/, "已被取代：另一节点排在最前"],
  [/^left vacant$/, "空缺"],
  [/^(?:left|stopped)$/, "已停止"],
  [/^its settings differ from the others'$/, "其设置与其他节点不同"],
];

export const serverZh = (text: string): string =>
  sentences.reduce((said, [pattern, chinese]) => said.replace(pattern, chinese), text);
