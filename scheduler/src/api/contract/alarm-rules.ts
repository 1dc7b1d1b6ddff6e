import { z } from "zod";
import { alarmRules } from "../../alarms/alarms.ts";
import { ruleKinds } from "../../alarms/stored-rules.ts";
import { limits } from "../../base/limits.ts";
import { duration, id, name, reason, route, spanMs, taskName, text, texts, time } from "./route.ts";

const noun = "alarms" as const;
const clock = z.string().max(5).describe('A time of day, such as "06:00".');
const zone = name(100).describe("A time zone, such as Asia/Shanghai.");
const channels = z.array(name(50)).max(100);

/** The fields of a stored rule, as users write them. */
export const ruleFields = {
  kind: z.enum(ruleKinds).describe("What it finds; the thresholds depend on it."),
  description: text(1_000).optional().describe("What the rule is for."),
  failures: z.int().optional().describe("Of kind failed: this number of the last `of` runs failed."),
  of: z.int().optional().describe("Default: `failures`."),
  longer: duration
    .optional()
    .describe("Of kind slow: a run takes longer than this; of kind store: statements of a process do, default 1s."),
  shorter: duration.optional().describe("Of kind quick: a run takes less than this."),
  times: z
    .number()
    .optional()
    .describe(
      "Longer than the task's own usual by this factor; of kind quick shorter than the usual by it. Default 3.",
    ),
  least: duration
    .optional()
    .describe(
      "Shorter runs are not too long by `times`, default 1m; of kind quick: nor too short if this is usual, 1s.",
    ),
  by: clock.optional().describe('Of kind deadline: the time of day, such as "06:00".'),
  zone: zone.optional(),
  days: z.array(z.int()).max(7).optional().describe("The days with a deadline; 0 is Sunday. Default: each."),
  forecast: z.boolean().optional().describe("Alarm before the deadline if the usual duration says that it is missed."),
  after: duration.optional().describe("How long it lasts before it is an alarm. Default 1m; of kind snapshot 10m."),
  more: z
    .int()
    .optional()
    .describe(
      "Of kind queue: more due runs of a task than this wait; of kind snapshot: transactions since one of unknown age, default 100000.",
    ),
  grows: z.int().optional().describe("Of kind queue: more due runs of a task than this have come to wait."),
  within: duration.optional().describe("Of kind queue: the time over which `grows` is measured. Default 10m."),
  before: duration.optional().describe("Of kind expiring: how long before it expires. Default 14d."),
  scope: z
    .strictObject({
      tasks: z.array(taskName).max(100).optional().describe("Names; * stands for any text. Default: every task."),
      groups: z.array(name(limits.groupNameLength)).max(100).optional(),
      owners: z.array(name(limits.ownerLength)).max(100).optional().describe("Tasks with one of these owners."),
      labels: texts.optional().describe("Tasks whose runLabels have all of these."),
      everywhere: z.boolean().optional().describe("Tasks of every namespace; default: of the rule's own."),
    })
    .optional()
    .describe(
      "The tasks that it covers; a task matches all that is given. Default: all of its namespace. Of the kinds store, snapshot, coordination and expiring: everywhere.",
    ),
  channels: channels.optional().describe("Whom it tells, by the names of the nodes' channels. Default: nobody."),
  quiet: z.strictObject({ from: clock, to: clock, zone }).optional().describe("Hours in which it sends nothing."),
  maintenance: z
    .array(z.strictObject({ from: time, to: time, description: text(1_000).optional() }))
    .max(100)
    .optional()
    .describe("Windows of planned work, in which it sends nothing either."),
  escalate: z
    .strictObject({ after: duration, channels })
    .optional()
    .describe("Whom an incident is also told that lasts for so long, and has an alarm that nobody acknowledged."),
  enabled: z.boolean().optional().describe("Default true."),
};

const stored = z
  .strictObject({
    name: name(limits.alarmRuleNameLength),
    version: id,
    ...ruleFields,
    finds: z.string().describe("In words."),
    author: z.string(),
    reason: z.string(),
    changed: time,
    bundle: z
      .string()
      .nullable()
      .default(null)
      .describe("The bundle whose files define it; null: a person or a program does."),
  })
  .meta({ id: "AlarmRule" });

const params = z.strictObject({ alarmRule: name(limits.alarmRuleNameLength).describe("The rule's name.") });
const invalid = ["OPTION_INVALID", "DURATION_INVALID", "ZONE_UNKNOWN"] as const;

export const alarmRuleRoutes = {
  listAlarmRules: route({
    touches: "listed",
    method: "GET",
    path: "/v1/alarm-rules",
    noun,
    policy: "viewer",
    summary: "The rules that the store keeps; and the rules of the node that answers, which its settings alone change",
    answer: z.strictObject({
      summaryMs: spanMs.nullable().describe("null: this node has no alarms in its settings."),
      rules: z
        .array(
          z.strictObject({
            rule: z.enum(alarmRules),
            words: z.string(),
            afterMs: spanMs.nullable().describe("How long it lasts before it is an alarm; null: at once."),
            channels: z.array(z.string()),
          }),
        )
        .describe("Of the node's settings; only for a caller with a right everywhere."),
      stored: z.array(stored).describe("By name."),
    }),
    errors: [],
  }),
  getAlarmRule: route({
    touches: "alarmRule",
    method: "GET",
    path: "/v1/alarm-rules/{alarmRule}",
    noun,
    policy: "viewer",
    params,
    etag: "gives",
    summary: "A rule that the store keeps",
    answer: stored,
    errors: ["ALARM_UNKNOWN"],
  }),
  createAlarmRule: route({
    touches: "body",
    method: "POST",
    path: "/v1/alarm-rules",
    noun,
    policy: "admin",
    etag: "gives",
    status: 201,
    makes: { readBy: "getAlarmRule", places: { alarmRule: "name" } },
    summary: "Store a new alarm rule; the leader evaluates it from its next look on",
    body: z.strictObject({
      name: name(limits.alarmRuleNameLength).describe("What it is called; a / ends its namespace."),
      ...ruleFields,
      reason,
    }),
    answer: stored,
    errors: [...invalid, "ALARM_RULE_EXISTS"],
  }),
  setAlarmRule: route({
    touches: "alarmRule",
    method: "PUT",
    path: "/v1/alarm-rules/{alarmRule}",
    noun,
    policy: "admin",
    params,
    etag: "heeds",
    summary: "Replace a stored alarm rule; the open alarms of a rule that is turned off end without a message",
    body: z.strictObject({ ...ruleFields, reason }),
    answer: stored,
    errors: [...invalid, "ALARM_UNKNOWN", "ALARM_RULE_STALE"],
  }),
  removeAlarmRule: route({
    touches: "alarmRule",
    method: "DELETE",
    path: "/v1/alarm-rules/{alarmRule}",
    noun,
    policy: "admin",
    params,
    etag: "heeds",
    summary: "Remove a stored alarm rule; its open alarms end without a message",
    query: z.strictObject({ reason }),
    answer: null,
    errors: ["ALARM_UNKNOWN", "ALARM_RULE_STALE"],
  }),
} as const;
