/** The texts of alarm messages, in the language and the time zone of the settings. Without side effects. */
import { zoneOf } from "../schedule/zone.ts";
import type { AlarmMessage, AlarmRule, AlarmSubject } from "./alarms.ts";

export const languages = ["en", "zh"] as const;
export type Language = (typeof languages)[number];

export interface Reader {
  language: Language;
  /** The time zone of the times in the text; with "UTC" they are in ISO 8601. */
  zone: string;
}

export interface MessageText {
  subject: string;
  text: string;
}

/** The rules whose alarms quote a run's error. The error is not translated, and times in it are not converted. */
const quoting: ReadonlySet<string> = new Set<AlarmRule>(["failed", "exhausted"]);

/** Formats a time as "2026-11-30 09:00:00 (Asia/Shanghai)"; for UTC as "2026-11-30T01:00:00.000Z". */
export function timeIn(ms: number, zone: string): string {
  if (zone === "UTC") return new Date(ms).toISOString();
  const local = new Date(ms + zoneOf(zone).at(ms).offset).toISOString();
  return `${local.slice(0, 10)} ${local.slice(11, 19)} (${zone})`;
}

interface Phrases {
  rule(words: string, rule: AlarmMessage["rule"]): string;
  said(text: string): string;
  who(names: readonly string[], more: boolean): string;
  summary(words: string, news: number): string;
  cleared(words: string, total: number): string;
  subject(one: AlarmSubject): string;
  more(tasks: number): string;
  silenced(count: number): string;
  over(since: string, total: number): string;
  since(since: string, total: number): string;
  see: string;
  test: string;
}

const english: Phrases = {
  rule: (words) => words,
  said: (text) => text,
  who: (names, more) => `: ${names.join(", ")}${more ? ", …" : ""}`,
  summary: (words, news) => `still: ${words} (${news} more)`,
  cleared: (words, total) => `all clear: ${words} (${total} in all)`,
  subject({ task, owner, count, text, run }) {
    const told = [...(owner === undefined ? [] : [`owner ${owner}`]), ...(count > 1 ? [`${count} times`] : [])].join(
      ", ",
    );
    return `- ${task === "" ? "" : `${task}${told === "" ? "" : ` (${told})`}: `}${text}${run === null ? "" : ` [run ${run}]`}`;
  },
  more: (tasks) => `- and ${tasks} more tasks`,
  silenced: (count) => `- open and silenced: ${count}`,
  over: (since, total) => `Over. It began at ${since}; ${total} in all.`,
  since: (since, total) => `Since ${since}; ${total} so far.`,
  see: "See carillon alarms, carillon doctor.",
  test: "Messages of Carillon's alarms reach this place.",
};

export const chineseRules: Record<AlarmRule, string> = {
  failed: "执行失败",
  exhausted: "所有重试均失败",
  late: "执行开始延迟",
  overdue: "到期的执行无人认领",
  unfired: "调度未触发",
  stuck: "执行卡住",
  leaderless: "没有主节点",
  clock: "存储的时钟发生跳变",
  rewound: "集群时间倒退",
  unreadable: "主节点无法读取任务",
  paused: "任务因连续失败而暂停",
  ended: "调度已结束",
  recovery: "存储已恢复",
};

/** The sentences that rules produce, with their Chinese translation. Other sentences are not translated. */
const chineseSentences: readonly [RegExp, string][] = [
  [/^a test by (.*): nothing is wrong$/, "$1 发出的测试：一切正常"],
  [/^started up to (\d+) s late$/, "最多延迟 $1 秒开始"],
  [
    /^the oldest is due since (\S+), and waits for a worker of group (\S+): .*$/,
    "最早的一个自 $1 起到期，正在等待组 $2 的工作进程：请启动一个，或为该组的工作进程增加容量",
  ],
  [
    /^the oldest is due since (\S+), and waits for the limit of its group (\S+), (\d+) at once: .*$/,
    "最早的一个自 $1 起到期，受组 $2 的上限（同时 $3 个）限制：请提高上限，或减少该组的任务",
  ],
  [
    /^the oldest is due since (\S+), and waits for its task's limit, (\d+) at once per worker: .*$/,
    "最早的一个自 $1 起到期，受任务上限（每个工作进程同时 $2 个）限制：请提高上限，或启动更多工作进程",
  ],
  [
    /^the oldest is due since (\S+), and waits for its task's own limit, (.+): raise it, or enqueue less$/,
    "最早的一个自 $1 起到期，受任务自身上限（$2）限制：请提高上限，或减少入队",
  ],
  [/^slots were given up by the task's misfire policy$/, "触发时刻已按任务的错过策略放弃"],
  [/^a slot came due and was not planned: (.+)$/, "触发时刻已到，却未被计划：$1"],
  [/^its worker is gone, and it was not taken back$/, "其工作进程已消失，执行未被收回"],
  [/^claimed, and never started$/, "已认领，但从未开始"],
  [/^past its timeout$/, "已超时"],
  [/^slots are planned a moment ahead only.*$/, "调度只能提前片刻计划；请查看 carillon nodes"],
  [/^no slot is left: give it another schedule, or remove it$/, "已无后续触发时刻：请更换调度，或删除任务"],
  [/^(.+): nothing of it starts until carillon tasks resume (.+)$/, "$1：在 carillon tasks resume $2 之前不会再启动"],
  [
    /^it is ([\d.]+) s ahead of cluster time, which goes on without it since (\S+);.*$/,
    "比集群时间快 $1 秒；自 $2 起集群时间不受其影响。请校准存储所在机器的时钟（NTP）；若时钟无误，请运行 carillon clock adopt",
  ],
  [
    /^it is ([\d.]+) s behind cluster time, which goes on without it since (\S+);.*$/,
    "比集群时间慢 $1 秒；自 $2 起集群时间不受其影响。请校准存储所在机器的时钟（NTP）；若时钟无误，请运行 carillon clock adopt",
  ],
  [
    /^it is ([\d.]+) h behind what it has been, and no slot of before fires until (\S+);.*$/,
    "集群时间落后 $1 小时；在 $2 之前不会触发更早的时刻。若存储所在机器的时钟有误，请校准（NTP）；若无误，请等待，或运行 carillon clock replan",
  ],
];

const chineseUnits: Record<string, string> = { d: "天", h: "小时", m: "分钟", s: "秒", ms: "毫秒" };

/** Translates a duration such as "2s500ms", or an age such as "120000 transactions". */
const chineseSpan = (span = ""): string =>
  span
    .replace(/ transactions$/, " 个事务")
    .replace(/(\d+)(ms|[dhms])/g, (_, count, unit) => `${count} ${chineseUnits[unit]} `)
    .trimEnd();

type Part = readonly [RegExp, (found: readonly string[]) => string];

/** The end of a list that names only its first parts. */
const chineseMore: Part = [/^and (\d+) more$/, ([, count]) => `另有 ${count} 项`];

/** The sentences that list parts of the cluster, their translation, and that of the parts; see cluster-findings.ts. */
const chineseLists: readonly [string, string, readonly Part[]][] = [
  [
    "half of the last statements took longer: ",
    "最近的语句有一半耗时超过：",
    [[/^(.+?) (\d[\ddhms]*)(?:, |$)/, ([, node, span]) => `${node} ${chineseSpan(span)}`]],
  ],
  [
    "dead rows are kept by: ",
    "以下对象使死行无法清理：",
    [
      [
        /^transaction \((.+?), pid (\d+)\) for (.+?)(?:, |$)/,
        ([, who, pid, span]) => `事务（${who}，进程号 ${pid}），已持续 ${chineseSpan(span)}`,
      ],
      [
        /^standby \((.+?), pid (\d+)\) for (.+?)(?:, |$)/,
        ([, who, pid, span]) => `备库（${who}，进程号 ${pid}），已持续 ${chineseSpan(span)}`,
      ],
      [/^prepared \((.+?)\) for (.+?)(?:, |$)/, ([, id, span]) => `预备事务（${id}），已持续 ${chineseSpan(span)}`],
      [/^slot \((.+?)\) for (.+?)(?:, |$)/, ([, name, span]) => `复制槽（${name}），已持续 ${chineseSpan(span)}`],
    ],
  ],
  [
    "without coordination service: ",
    "与协调服务失去联系：",
    [[/^(.+?) for (\d[\ddhms]*)(?:, |$)/, ([, node, span]) => `${node} 已持续 ${chineseSpan(span)}`]],
  ],
  [
    "expires soon or has expired: ",
    "即将到期或已到期：",
    [
      [/^token (.+?) of (.+?) at (\S+Z)(?:, |$)/, ([, token, user, time]) => `${user} 的令牌 ${token}（${time}）`],
      [/^worker key (.+?) at (\S+Z)(?:, |$)/, ([, key, time]) => `工作进程密钥 ${key}（${time}）`],
      [/^certificate (.+?) of (.+?) at (\S+Z)(?:, |$)/, ([, file, node, time]) => `${node} 的证书 ${file}（${time}）`],
    ],
  ],
];

/** Translates a list part by part. A part of an unknown form, and those after it, stay as they are. */
function chineseList(text: string): string | undefined {
  const list = chineseLists.find(([words]) => text.startsWith(words));
  if (!list) return undefined;
  const [words, said, parts] = list;
  const translated: string[] = [];
  let rest = text.slice(words.length);
  while (rest !== "") {
    const part = [chineseMore, ...parts].find(([pattern]) => pattern.test(rest));
    const found = part?.[0].exec(rest);
    translated.push(part && found ? part[1](found) : rest);
    rest = rest.slice(found ? found[0].length : rest.length);
  }
  return said + translated.join("；");
}

const chinese: Phrases = {
  rule: (words, rule) =>
    rule === "test" ? chinese.said(words) : ((chineseRules as Record<string, string>)[rule] ?? words),
  said(text) {
    const found = chineseSentences.find(([pattern]) => pattern.test(text));
    return chineseList(text) ?? (found ? text.replace(found[0], found[1]) : text);
  },
  who: (names, more) => `：${names.join("、")}${more ? "等" : ""}`,
  summary: (words, news) => `持续告警：${words}（新增 ${news} 次）`,
  cleared: (words, total) => `已解除：${words}（共 ${total} 次）`,
  subject({ task, owner, count, text, run }) {
    const told = [...(owner === undefined ? [] : [`负责人 ${owner}`]), ...(count > 1 ? [`${count} 次`] : [])].join(
      "，",
    );
    return `- ${task === "" ? "" : `${task}${told === "" ? "" : `（${told}）`}：`}${text}${run === null ? "" : ` [执行记录 ${run}]`}`;
  },
  more: (tasks) => `- 另有 ${tasks} 个任务`,
  silenced: (count) => `- 未解除且已静默：${count}`,
  over: (since, total) => `已结束。始于 ${since}；共 ${total} 次。`,
  since: (since, total) => `始于 ${since}；至今 ${total} 次。`,
  see: "详情：carillon alarms、carillon doctor。",
  test: "Carillon 的告警消息可以送达此处。",
};

const isoTimes = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g;

export function messageText(
  message: AlarmMessage,
  { language, zone }: Reader = { language: "en", zone: "UTC" },
): MessageText {
  const phrases = language === "zh" ? chinese : english;
  const { kind, rule, total, news, subjects, moreSubjects, sinceMs, silenced = 0 } = message;
  const words = phrases.rule(message.words, rule);
  if (kind === "test") return { subject: words, text: phrases.test };
  const names = subjects.filter(({ task }) => task !== "").map(({ task }) => task);
  const who = names.length === 0 ? "" : phrases.who(names.slice(0, 3), names.length > 3 || moreSubjects > 0);
  const subject = {
    raised: `${words}${who}`,
    summary: `${phrases.summary(words, news)}${who}`,
    cleared: phrases.cleared(words, total),
  }[kind];
  const inZone = (text: string) =>
    zone === "UTC" ? text : text.replace(isoTimes, (time) => timeIn(Date.parse(time), zone));
  const lines = subjects.map((one) =>
    phrases.subject({ ...one, text: quoting.has(rule) ? one.text : inZone(phrases.said(one.text)) }),
  );
  if (moreSubjects > 0) lines.push(phrases.more(moreSubjects));
  if (silenced > 0) lines.push(phrases.silenced(silenced));
  const since = timeIn(sinceMs, zone);
  const head = kind === "cleared" ? phrases.over(since, total) : phrases.since(since, total);
  return { subject, text: [head, ...lines, "", phrases.see].join("\n") };
}
