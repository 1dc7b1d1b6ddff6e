import { z } from "zod";
import { alarmRules } from "../../alarms/alarms.ts";
import { channelKindNames } from "../../alarms/channel-kinds.ts";
import { limits } from "../../base/limits.ts";
import { alarmRuleRoutes } from "./alarm-rules.ts";
import { duration, id, maybeTime, name, page, paged, reason, route, taskName, time } from "./route.ts";

const rule = name(limits.alarmRuleNameLength).describe(
  `A rule of the nodes' settings (${alarmRules.join(", ")}), or the name of a stored rule.`,
);
const noun = "alarms" as const;

const alarm = z
  .strictObject({
    rule,
    task: taskName.nullable().describe("null: the cluster."),
    opened: time,
    last: time,
    count: z.int().describe("How many times; 0: it cannot be counted."),
    text: z.string(),
    run: id.nullable(),
    acknowledged: z.strictObject({ at: time, by: z.string(), why: z.string() }).nullable(),
    silencedUntil: maybeTime,
  })
  .meta({ id: "Alarm" });

const silenceNumber = id.describe("The silence's number.");

const silence = z
  .strictObject({
    silence: id,
    rule: z.string().nullable().describe("null: any."),
    task: taskName.nullable().describe("null: any."),
    from: time,
    until: time,
    by: z.string(),
    reason: z.string(),
  })
  .meta({ id: "Silence" });

const message = z
  .strictObject({
    message: id,
    channel: z.string(),
    rule: z.string().describe("A rule's name; test."),
    kind: z.enum(["raised", "summary", "cleared", "test"]),
    created: time,
    state: z.enum(["waiting", "sent", "given up"]),
    attempts: z.int(),
    sent: maybeTime,
    next: maybeTime.describe("When it is tried again, or, while a node is at it, by another."),
    error: z.string().nullable().describe("Of the last try."),
  })
  .meta({ id: "AlarmNotice" });

export const alarmRoutes = {
  ...alarmRuleRoutes,
  listAlarms: route({
    touches: "listed",
    method: "GET",
    path: "/v1/alarms",
    noun,
    policy: "viewer",
    summary: "What is wrong now, the latest first",
    query: z.strictObject({
      ...paged,
      rule: name(limits.alarmRuleNameLength).optional().describe("Only alarms of this rule."),
      task: taskName.optional().describe("Only alarms about this task."),
    }),
    answer: page(alarm),
    errors: [],
  }),
  acknowledgeAlarm: route({
    touches: "body",
    method: "POST",
    path: "/v1/alarms/{rule}/acknowledge",
    noun,
    policy: "operator",
    summary: "Say that open alarms of a rule are known: they are told of no more until they are over and come again",
    params: z.strictObject({ rule: name(limits.alarmRuleNameLength).describe("The rule whose alarms are meant.") }),
    body: z.strictObject({ task: taskName.optional().describe("Default: all that are open."), reason }),
    answer: z.strictObject({ acknowledged: z.int() }),
    errors: ["ALARM_UNKNOWN"],
  }),
  listAlarmChannels: route({
    touches: "cluster",
    method: "GET",
    path: "/v1/alarm-channels",
    noun,
    policy: "viewer",
    summary: "Where messages go, by the node that answers; without what is secret of it",
    answer: z.strictObject({
      channels: z.array(
        z.strictObject({
          name: z.string(),
          kind: z.enum(channelKindNames),
          to: z.string().describe("A host, addresses, or a program."),
          signed: z.boolean(),
          rules: z.array(z.enum(alarmRules)),
        }),
      ),
    }),
    errors: [],
  }),
  testAlarmChannel: route({
    touches: "cluster",
    method: "POST",
    path: "/v1/alarm-channels/{channel}/test",
    noun,
    policy: "operator",
    status: 202,
    makes: { readBy: "getAlarmMessage", places: { message: "message" } },
    summary: "Send a message that says that nothing is wrong, the way all others go",
    params: z.strictObject({ channel: name(50).describe("The channel's name.") }),
    body: z.strictObject({ reason }),
    answer: message,
    errors: ["ALARM_UNKNOWN"],
  }),
  previewAlarmChannel: route({
    touches: "cluster",
    method: "GET",
    path: "/v1/alarm-channels/{channel}/preview",
    noun,
    policy: "viewer",
    summary: "What a channel would be sent for a failure, without what is secret of it",
    params: z.strictObject({ channel: name(50).describe("The channel's name.") }),
    answer: z.strictObject({
      kind: z.enum(channelKindNames),
      to: z.string().describe("A host, addresses, or a program."),
      content: z.string().describe("JSON as text; of a mail its subject and text."),
    }),
    errors: ["ALARM_UNKNOWN"],
  }),
  listAlarmMessages: route({
    touches: "cluster",
    method: "GET",
    path: "/v1/alarm-messages",
    noun,
    policy: "viewer",
    summary: "What was told, or waits to be, newest first",
    query: z.strictObject(paged),
    answer: page(message),
    errors: [],
  }),
  getAlarmMessage: route({
    touches: "cluster",
    method: "GET",
    path: "/v1/alarm-messages/{message}",
    noun,
    policy: "viewer",
    summary: "A message as it is read, and each try to send it",
    params: z.strictObject({ message: id.describe("The message's number.") }),
    answer: message.extend({
      subject: z.string(),
      text: z.string(),
      tries: z.array(z.strictObject({ attempt: z.int(), at: time, node: z.string(), error: z.string().nullable() })),
    }),
    errors: ["ALARM_UNKNOWN"],
  }),
  listSilences: route({
    touches: "listed",
    method: "GET",
    path: "/v1/alarm-silences",
    noun,
    policy: "viewer",
    summary: "What is not told of for a while, newest first",
    answer: z.strictObject({ silences: z.array(silence) }),
    errors: [],
  }),
  getSilence: route({
    touches: "silence",
    method: "GET",
    path: "/v1/alarm-silences/{silence}",
    noun,
    policy: "viewer",
    summary: "A silence that has not ended",
    params: z.strictObject({ silence: silenceNumber }),
    answer: silence,
    errors: ["ALARM_UNKNOWN"],
  }),
  silenceAlarms: route({
    touches: "body",
    method: "POST",
    path: "/v1/alarm-silences",
    noun,
    policy: "operator",
    status: 201,
    makes: { readBy: "getSilence", places: { silence: "silence" } },
    summary: "Tell nothing of a rule, a task or all for a while; what is open then is told afterwards",
    body: z.strictObject({
      rule: name(limits.alarmRuleNameLength).optional().describe("Default: any."),
      task: taskName.optional().describe("Default: any, and the cluster."),
      for: duration.describe("At most 30 days."),
      reason,
    }),
    answer: silence,
    errors: ["OPTION_INVALID", "DURATION_INVALID", "TASK_UNKNOWN", "ALARM_UNKNOWN"],
  }),
  endSilence: route({
    touches: "silence",
    method: "DELETE",
    path: "/v1/alarm-silences/{silence}",
    noun,
    policy: "operator",
    summary: "End a silence before its time",
    params: z.strictObject({ silence: silenceNumber }),
    query: z.strictObject({ reason }),
    answer: null,
    errors: ["ALARM_UNKNOWN"],
  }),
} as const;
