import { Reach } from "../../access/access.ts";
import type { AlarmRecord, AlarmStore, OutboxRow, Silence } from "../../alarms/alarm-store.ts";
import { type AlarmRule, alarmRules, ruleWords, silenceSpanMs, silenceUnknown } from "../../alarms/alarms.ts";
import { messageText } from "../../alarms/message-text.ts";
import { checkRule, checkRuleName, type RuleContent, ruleObject } from "../../alarms/stored-rules.ts";
import type { alarmRuleRoutes } from "../../api/contract/alarm-rules.ts";
import type { alarmRoutes } from "../../api/contract/alarms.ts";
import type { Answer } from "../../api/contract.ts";
import { iso, isoTime } from "../../api/run-json.ts";
import { CarillonError } from "../../base/errors.ts";
import { meant } from "../../base/nearest.ts";
import { noticeOptions } from "../../engine/alarms/notices.ts";
import { previewOf, sampleMessage } from "../../engine/alarms/preview.ts";
import type { AlarmSettings } from "../../settings/alarms/alarms.ts";
import { type ChannelOptions, isSigned, kindOf, receiverOf } from "../../settings/alarms/channels.ts";
import type { Store } from "../../store/store.ts";
import type { Call, Some } from "../call.ts";
import { changeOf } from "./changes.ts";
import { numberCursor, pageOf, readCursor } from "./pages.ts";

const asAlarm = ({ rule, subject, openedMs, lastMs, count, text, runId, seen, silencedUntilMs }: AlarmRecord) => ({
  rule,
  task: subject === "" ? null : subject,
  opened: isoTime(openedMs),
  last: isoTime(lastMs),
  count,
  text,
  run: runId,
  silencedUntil: iso(silencedUntilMs),
  acknowledged: seen && { at: isoTime(seen.atMs), by: seen.by, why: seen.why },
});

const asMessage = ({ id, channel, rule, kind, createdMs, attempts, sentMs, nextMs, error }: OutboxRow) => ({
  message: id,
  channel,
  rule,
  created: isoTime(createdMs),
  attempts,
  sent: iso(sentMs),
  next: iso(nextMs),
  error,
  kind: kind as Answer<"getAlarmMessage">["kind"],
  state: sentMs !== null ? ("sent" as const) : nextMs === null ? ("given up" as const) : ("waiting" as const),
});

const asSilence = ({ silenceId, rule, task, fromMs, untilMs, author, reason }: Silence) => ({
  silence: silenceId,
  rule,
  task,
  from: isoTime(fromMs),
  until: isoTime(untilMs),
  by: author,
  reason,
});

const asChannel = (name: string, channel: ChannelOptions, rules: AlarmSettings["rules"]) => ({
  name,
  kind: kindOf(channel),
  to: receiverOf(channel),
  signed: isSigned(channel),
  rules: alarmRules.filter((rule) => rules[rule].includes(name)),
});

type AlarmPlace = [openedMs: number, rule: string, subject: string];

/** The alarm's position in the list. It consists of fields that do not change while the alarm is open, so a cursor stays valid. */
const placeOf = ({ openedMs, rule, subject }: AlarmRecord): AlarmPlace => [openedMs, rule, subject];

const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
const inOrder = (a: AlarmPlace, b: AlarmPlace): number => b[0] - a[0] || byText(a[1], b[1]) || byText(a[2], b[2]);

/** True if the caller may view the alarm. An alarm without a task concerns the whole cluster, so it requires access to all namespaces. */
const isSeen = (reach: Reach, task: string): boolean => (task === "" ? reach.namespaces === null : reach.has(task));

/** Checks access to a task, or to all namespaces if no task is given. @throws ACCESS_DENIED */
function checkAbout(reach: Reach, task: string | undefined): void {
  if (task !== undefined) reach.check(task);
  else if (reach.namespaces !== null) throw reach.refusal("everywhere; of one task it is asked for in its namespace");
}

/** Returns the alarm settings and the channel with this name. @throws ALARM_UNKNOWN */
function knownChannel(settings: AlarmSettings | null, name: string) {
  const channel = settings && Object.hasOwn(settings.channels, name) ? settings.channels[name] : undefined;
  if (settings && channel) return { settings, channel };
  const near = meant(name, Object.keys(settings?.channels ?? {}));
  throw new CarillonError("ALARM_UNKNOWN", `this node has no channel ${JSON.stringify(name)}${near}`, {
    hint: "All nodes of a cluster are given the same alarms: see docs/operate/alarms.md.",
  });
}

export function alarmCalls({ alarms }: Store, settings: AlarmSettings | null): Some<keyof typeof alarmRoutes> {
  /**
   * Checks access to a silence. A silence's task never changes, so the result is still valid if the silence ends before the next call.
   * @throws ALARM_UNKNOWN, ACCESS_DENIED
   */
  const checkSilence = async (silence: number, { nowMs, who, reach }: Call) => {
    if (reach.namespaces === null) return;
    const sees = who === null ? reach : new Reach(who, "viewer");
    const found = (await alarms.silences(nowMs)).find(({ silenceId }) => silenceId === silence);
    if (!found || !isSeen(sees, found.task ?? "")) throw silenceUnknown(silence);
    checkAbout(reach, found.task ?? undefined);
  };
  return {
    ...alarmRuleCalls(alarms, settings),
    async listAlarms({ cursor, limit, rule, task }, { nowMs, reach }) {
      if (task !== undefined) reach.check(task);
      // All open alarms are read, and the page is selected here: their number is limited by the rules and the failing tasks.
      const open = (await alarms.open(nowMs)).filter(
        (one) => (rule ?? one.rule) === one.rule && (task ?? one.subject) === one.subject && isSeen(reach, one.subject),
      );
      const after = readCursor(cursor, ["number", "string", "string"]) as AlarmPlace | null;
      const rest = open.filter((one) => after === null || inOrder(after, placeOf(one)) < 0);
      return pageOf(
        rest.sort((a, b) => inOrder(placeOf(a), placeOf(b))),
        limit,
        asAlarm,
        placeOf,
      );
    },
    async acknowledgeAlarm({ rule, task, reason }, call) {
      checkAbout(call.reach, task);
      return { acknowledged: await alarms.see(rule, task ?? null, changeOf(call, reason)) };
    },
    listAlarmChannels: async () => ({
      channels: settings
        ? Object.entries(settings.channels).map(([name, channel]) => asChannel(name, channel, settings.rules))
        : [],
    }),
    async previewAlarmChannel({ channel }, { nowMs }) {
      const known = knownChannel(settings, channel);
      return previewOf(known.channel, sampleMessage(nowMs), noticeOptions(known.channel, known.settings), nowMs);
    },
    async testAlarmChannel({ channel, reason }, call) {
      knownChannel(settings, channel);
      return asMessage(await alarms.message(await alarms.test(channel, changeOf(call, reason))));
    },
    async listAlarmMessages({ cursor, limit }) {
      return pageOf(await alarms.outbox(limit + 1, numberCursor(cursor)), limit, asMessage, ({ id }) => [id]);
    },
    async getAlarmMessage({ message }) {
      const found = await alarms.message(message);
      const tries = found.tries.map(({ attempt, atMs, node, error }) => ({ attempt, at: isoTime(atMs), node, error }));
      return { ...asMessage(found), ...messageText(found.message, settings ?? undefined), tries };
    },
    async listSilences(_, { nowMs, reach }) {
      const all = await alarms.silences(nowMs);
      return { silences: all.filter(({ task }) => isSeen(reach, task ?? "")).map(asSilence) };
    },
    async getSilence({ silence }, { nowMs, reach }) {
      const found = (await alarms.silences(nowMs)).find(({ silenceId }) => silenceId === silence);
      if (!found || !isSeen(reach, found.task ?? "")) throw silenceUnknown(silence);
      return asSilence(found);
    },
    async silenceAlarms({ rule = null, task = null, for: span, reason }, call) {
      checkAbout(call.reach, task ?? undefined);
      const untilMs = call.nowMs + silenceSpanMs(span);
      return asSilence(await alarms.silence({ rule, task, untilMs }, changeOf(call, reason)));
    },
    async endSilence({ silence, reason }, call) {
      await checkSilence(silence, call);
      await alarms.unsilence(silence, changeOf(call, reason));
      return undefined;
    },
  };
}

const afterMs = (rule: AlarmRule, settings: AlarmSettings): number | null =>
  ({
    failed: null,
    exhausted: null,
    late: settings.lateMs,
    overdue: settings.overdueMs,
    unfired: settings.unfiredMs,
    stuck: settings.stuckMs,
    leaderless: settings.leaderlessMs,
    clock: null,
    rewound: null,
    unreadable: null,
    paused: null,
    ended: null,
    recovery: null,
  })[rule];

/** Refuses a rule whose scope is all namespaces, unless the caller has access to all namespaces. @throws ACCESS_DENIED */
export function checkRuleReach({ scope }: Pick<RuleContent, "scope">, reach: Reach): void {
  if (scope?.everywhere && reach.namespaces !== null) throw reach.refusal("everywhere, as the rule's scope is");
}

/**
 * Refuses a rule that names an unknown channel, because its messages would not be sent. All nodes should have the same channels; a node
 * without alarm settings cannot check this and accepts the rule.
 * @throws OPTION_INVALID
 */
export function checkChannels({ channels = [], escalate }: RuleContent, settings: AlarmSettings | null): void {
  if (settings === null) return;
  const known = Object.keys(settings.channels);
  const named = [
    ...channels.map((channel, at) => [`channels[${at}]`, channel] as const),
    ...(escalate?.channels ?? []).map((channel, at) => [`escalate.channels[${at}]`, channel] as const),
  ];
  const wrong = named.find(([, channel]) => !known.includes(channel));
  if (wrong === undefined) return;
  const [path, channel] = wrong;
  throw new CarillonError("OPTION_INVALID", `no channel is called ${channel}${meant(channel, known)}`, {
    path,
    hint: `The nodes' settings have ${known.join(", ")}.`,
  });
}

function alarmRuleCalls(alarms: AlarmStore, settings: AlarmSettings | null): Some<keyof typeof alarmRuleRoutes> {
  const checked = (content: RuleContent, reach: Reach): RuleContent => {
    checkRuleReach(content, reach);
    checkChannels(checkRule(content), settings);
    return content;
  };
  return {
    async listAlarmRules(_, { reach }) {
      const isSeen = settings !== null && reach.namespaces === null;
      return {
        summaryMs: settings?.summaryMs ?? null,
        rules: isSeen
          ? alarmRules.map((rule) => ({
              rule,
              words: ruleWords[rule],
              afterMs: afterMs(rule, settings),
              channels: settings.rules[rule],
            }))
          : [],
        stored: (await alarms.rules()).filter(({ name }) => reach.has(name)).map(ruleObject),
      };
    },
    getAlarmRule: async ({ alarmRule }) => ruleObject(await alarms.rule(alarmRule)),
    async createAlarmRule({ name, reason, ...content }, call) {
      call.reach.check(name);
      const rule = checked(content as RuleContent, call.reach);
      return ruleObject(await alarms.createRule(checkRuleName(name), rule, changeOf(call, reason)));
    },
    async setAlarmRule({ alarmRule, reason, ...content }, call) {
      const { reach, ifVersion } = call;
      const rule = checked(content as RuleContent, reach);
      if (reach.namespaces !== null) checkRuleReach((await alarms.rule(alarmRule)).content, reach);
      return ruleObject(await alarms.replaceRule(alarmRule, rule, changeOf(call, reason), ifVersion));
    },
    async removeAlarmRule({ alarmRule, reason }, call) {
      const { reach, ifVersion } = call;
      if (reach.namespaces !== null) checkRuleReach((await alarms.rule(alarmRule)).content, reach);
      await alarms.removeRule(alarmRule, changeOf(call, reason), ifVersion);
      return undefined;
    },
  };
}
