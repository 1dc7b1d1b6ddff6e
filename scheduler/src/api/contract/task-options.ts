/** The schemas of a task's options, generated from the table of options. The library checks which options can be combined. */
import { z } from "zod";
import { limits } from "../../base/limits.ts";
import type { FieldShape, Shape } from "../../task/kinds/kinds.ts";
import { type OptionName, optionRows, taskOptions as options, type TaskOptions } from "../../task/options.ts";
import { duration, json, name, text, texts } from "./route.ts";

const bounds = {
  fromMs: z.number().optional().describe("No slot before."),
  untilMs: z.number().optional().describe("No slot after; one at this very moment is the last."),
  times: z.int().min(1).optional().describe("So many slots, counted from fromMs."),
};

const zoned = {
  zone: z.string().max(100).optional(),
  gap: z.enum(["skip", "shift"]).optional(),
  overlap: z.enum(["first", "last", "both"]).optional(),
};

const jitter = {
  jitterMs: z.int().min(0).optional().describe("Slots are due up to this much later."),
  jitterBy: z
    .enum(["task"])
    .optional()
    .describe("All slots are later by one amount, which is the task's; absent: each by its own."),
};

const schedule = z
  .discriminatedUnion("type", [
    z
      .strictObject({
        type: z.literal("cron"),
        expression: text(limits.cronTextLength),
        ...zoned,
        ...jitter,
        ...bounds,
      })
      .meta({ id: "CronSchedule" }),
    z
      .strictObject({
        type: z.literal("every"),
        everyMs: z.int().min(1),
        mode: z.enum(["rate", "delay"]).optional(),
        anchorMs: z.number().optional(),
        ...jitter,
        ...bounds,
      })
      .meta({ id: "EverySchedule" }),
    z
      .strictObject({
        type: z.literal("interval"),
        count: z.int().min(1).describe("Every n days, weeks, months or years of the calendar."),
        unit: z.enum(["day", "week", "month", "year"]),
        on: z
          .array(z.union([z.int(), z.string().max(20)]))
          .max(100)
          .optional()
          .describe('Of a week "MON"; of a month 15, "last", "TUE#2", "FRIL"; of a year "04-15".'),
        at: z.array(z.string().max(10)).max(100).optional().describe('Times of day: "09:00".'),
        anchor: z.string().max(10).optional().describe("A local date; its period is one that has slots."),
        monthEnd: z.enum(["last", "skip"]).optional().describe("For a month that lacks the day."),
        ...zoned,
        ...jitter,
        ...bounds,
      })
      .meta({ id: "IntervalSchedule" }),
    z
      .strictObject({
        type: z.literal("rrule"),
        rule: text(limits.ruleTextLength).describe(
          "The value of an RRULE (RFC 5545), or lines with DTSTART, RRULE, RDATE, EXDATE.",
        ),
        start: z.string().max(30).optional().describe("The local time that the rule counts from."),
        rdate: z.array(z.string().max(30)).max(limits.ruleDates).optional(),
        exdate: z.array(z.string().max(30)).max(limits.ruleDates).optional(),
        ...zoned,
        ...jitter,
        ...bounds,
      })
      .meta({ id: "RuleSchedule" }),
    z.strictObject({ type: z.literal("at"), atMs: z.number() }).meta({ id: "OnceSchedule" }),
    z.strictObject({ type: z.literal("manual") }).meta({ id: "ManualSchedule" }),
  ])
  .meta({ id: "Schedule" });

/**
 * The API accepts a schedule in the form of its answers, or in the form of task files. The library validates it, because its error says
 * what is wrong, whereas a union of schemas would only report that no member matches.
 */
const givenSchedule = z
  .union([schedule, text(limits.ruleTextLength), z.record(z.string(), json)])
  .describe(
    'As an answer has it, or in the words of a file: "0 2 * * *", "every Monday at 09:00", { cron: "0 2 * * *", zone: "Europe/Berlin" }, { every: "5m" }, { rrule: "FREQ=DAILY", start: "2027-01-01T09:00" }, { at: "2027-01-01T00:00:00Z" } or "manual".',
  );

/** A schedule in the notation of task files: a text, or the arguments of `cron`, `every`, `rrule` or `at`. */
export type WordedSchedule =
  | string
  | (({ cron: string } | { every: string | number } | { rrule: string } | { at: string | number }) &
      Record<string, unknown>);

function schemaOf(shape: Shape): z.ZodType {
  switch (shape.is) {
    case "duration":
      return duration;
    case "count":
      // The limits are only documented here. The library checks them, because its error names the option, whereas a union of schemas would
      // only report that no member matches.
      return z.int().meta({ minimum: shape.least, maximum: shape.most });
    case "share":
      return z.number().meta({ minimum: 0, maximum: 1 });
    case "flag":
      return z.boolean();
    case "choice":
      return z.enum(shape.values as [string, ...string[]]);
    case "text":
      if (shape.longest === null) return z.string();
      return shape.isName ? name(shape.longest) : text(shape.longest);
    case "texts":
      return texts;
    case "json":
      return json;
    case "schema":
      return z.record(z.string(), json);
    case "schedule":
      return givenSchedule;
    case "list":
      return z.array(schemaOf(shape.of)).max(shape.most);
    case "object":
      return z.strictObject(
        Object.fromEntries(
          Object.entries(shape.fields).map(([field, one]) => [field, fieldSchema(one, shape.mergedByEdits)]),
        ),
      );
    case "either":
      return z.union(shape.of.map(schemaOf) as [z.ZodType, ...z.ZodType[]]);
  }
}

function fieldSchema({ shape, required, description }: FieldShape, mayBeLeftOut = false): z.ZodType {
  const schema = schemaOf(shape).describe(description);
  return required && !mayBeLeftOut ? schema : schema.optional();
}

const rows = optionRows.map(([option, { kind, nullable, description }]) => {
  const schema = schemaOf(kind.shape);
  return [option, (nullable ? schema.nullable() : schema).describe(description).optional()] as const;
});

export const optionSchema = (option: OptionName): z.ZodType => schemaOf(options[option].kind.shape);

/** The type of an option in an edit: a policy may be given with only some of its fields. */
type Some<Option> = Option | (Option extends object ? Partial<Option> : never);

/** Task options (TaskOptions) as a request contains them: fields of a schedule that have defaults may be omitted. */
export type GivenOptions = Omit<TaskOptions, "schedule" | "retry" | "misfire"> & {
  schedule?: z.input<typeof schedule> | WordedSchedule;
  retry?: Some<TaskOptions["retry"]>;
  misfire?: Some<TaskOptions["misfire"]>;
};

export const taskOptions = z
  .strictObject(Object.fromEntries(rows))
  .meta({ id: "TaskOptions", description: "The options of a task, as in code." }) as unknown as z.ZodType<
  GivenOptions,
  GivenOptions
>;
