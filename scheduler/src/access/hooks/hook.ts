/**
 * Incoming webhooks: what a hook is, and its validation. A hook enqueues a run for each request that it accepts; see docs/tasks/hooks.md.
 * This file is imported by the API's contract, so it must not import anything that browsers lack.
 */
import { z } from "zod";
import { type Duration, parseDuration } from "../../base/duration.ts";
import { CarillonError, within } from "../../base/errors.ts";
import { limits } from "../../base/limits.ts";
import { namespaceOf } from "../../base/namespace.ts";
import { tasksOf } from "./hook-tasks.ts";

/** How requests are signed: docs/tasks/hooks.md has the headers of each scheme. */
export const hookSchemes = ["github", "stripe", "standard", "bearer"] as const;
export type HookScheme = (typeof hookSchemes)[number];

const secretHeader = /^header:(?:(?:proxy-)?authorization|cookie|.*signature.*)$/i;
const taskName = z.string().min(1).max(limits.taskNameLength);
const source = z
  .string()
  .max(300)
  .regex(/^(?:(?:\/(?:[^~\0]|~[01])*)?|header:[A-Za-z0-9-]+)$/, "is neither a JSON Pointer nor header:NAME")
  // A hook copies the value into a run, which viewers may read, so the value must not be a credential.
  .refine((text) => !secretHeader.test(text), "is a header with a secret or a signature, which a run must not have");
const duration = z.union([z.string().max(300), z.number().min(0)]);

/** An object of `least` to `limits.hookEntries` entries. */
const entries = <Value extends z.ZodType>(value: Value, least: number) =>
  z
    .record(z.string().max(200), value)
    .refine((given) => Object.keys(given).length >= least, "needs an entry")
    .refine((given) => Object.keys(given).length <= limits.hookEntries, `has more than ${limits.hookEntries} entries`)
    .meta({ minProperties: least, maxProperties: limits.hookEntries });

/** The fields of a hook, as users write them. */
export const hookFields = {
  secret: z.string().min(1).max(limits.secretNameLength).describe("The name of the stored secret that signs requests."),
  scheme: z.enum(hookSchemes).describe("How requests are signed."),
  task: z
    .union([
      taskName,
      z.strictObject({
        by: source.describe("Where the request has the value that chooses."),
        of: entries(taskName, 1).describe("The task of each value; others are taken and ignored."),
      }),
    ])
    .describe("The task that is run, or tasks by a value of the request."),
  payload: z
    .union([source, entries(source, 0)])
    .optional()
    .describe('A part of the body by a JSON Pointer, or an object of such parts. Default "": the whole body.'),
  key: source
    .optional()
    .describe("Where the request has the key. Default by the scheme: the delivery's id; of bearer: no key."),
  uniqueFor: duration.optional().describe("How long the key stands for its run. Default 4d."),
  delay: duration.optional().describe("After what time the run is due: a duration, or where the request has one."),
  tolerance: duration.optional().describe("How old a signed time may be, of stripe and standard. Default 5m."),
  description: z.string().max(1_000).optional().describe("What the hook is for."),
  enabled: z.boolean().optional().describe("Default true."),
};
const content = z.strictObject(hookFields);
export type HookContent = z.infer<typeof content>;

export interface Hook {
  name: string;
  version: number;
  content: HookContent;
  author: string;
  reason: string;
  changedMs: number;
  /** The bundle whose files define the hook; null if a user or a program does. */
  bundle: string | null;
}

const nameShape = /^[A-Za-z0-9][A-Za-z0-9._:@/-]*$/;

/** Checks and returns the name of a hook. @throws OPTION_INVALID */
export function checkHookName(name: string): string {
  if (name.length <= limits.hookNameLength && nameShape.test(name)) return name;
  throw wrong("hook", `a hook cannot be called ${JSON.stringify(name.slice(0, limits.hookNameLength))}`);
}

/** Checks and returns a hook's content. @throws OPTION_INVALID, DURATION_INVALID; the error's path names the wrong part */
export function checkHook(name: string, given: unknown): HookContent {
  const read = content.safeParse(given);
  if (!read.success) {
    const [issue] = read.error.issues;
    const path = issue?.path.join(".") ?? "";
    throw wrong(path, `the hook${path === "" ? "" : `'s ${path}`} ${issue?.message ?? "cannot be read"}`);
  }
  for (const task of tasksOf(read.data))
    if (namespaceOf(task) !== namespaceOf(name))
      throw wrong("task", `the hook ${name} and its task ${task} are in different namespaces`);
  checkTimes(read.data);
  return read.data;
}

/** The default time for which a repeated key enqueues no second run: longer than the three days for which Stripe redelivers. */
export const defaultUniqueFor = "4d";
/** The default of the largest difference between a request's signed time and now. */
export const defaultTolerance = "5m";
const signsTime: Readonly<Record<HookScheme, boolean>> = { github: false, stripe: true, standard: true, bearer: false };

function checkTimes({ scheme, delay, uniqueFor = defaultUniqueFor, tolerance = defaultTolerance }: HookContent): void {
  const [uniqueMs, toleranceMs] = [readDuration(uniqueFor, "uniqueFor", 1_000), readDuration(tolerance, "tolerance")];
  // A signed request can be replayed from `tolerance` before its signed time until `tolerance` after it. Its key must stay known that long.
  if (signsTime[scheme] && uniqueMs < 2 * toleranceMs)
    throw wrong("uniqueFor", "the hook's uniqueFor is less than twice its tolerance");
  if (!isSource(delay)) {
    if (delay !== undefined) readDuration(delay, "delay");
    return;
  }
  const read = source.safeParse(delay);
  if (!read.success) throw wrong("delay", `the hook's delay ${read.error.issues[0]?.message}`);
}

const readDuration = (given: Duration, part: string, leastMs = 0): number =>
  within(part, () => parseDuration(given, part, leastMs));

/** True if a text is the place of a value in a request (a JSON Pointer or `header:NAME`), and not itself the value. */
export const isSource = (text: unknown): text is string => typeof text === "string" && /^(?:\/|header:)/.test(text);

const wrong = (path: string, what: string) =>
  new CarillonError("OPTION_INVALID", what, { path, hint: "See docs/tasks/hooks.md." });

/** Converts a hook to the form of the API and of the command line's --json. */
export const hookObject = ({ content, changedMs, ...rest }: Hook) => ({
  ...rest,
  ...content,
  changed: new Date(changedMs).toISOString(),
});
