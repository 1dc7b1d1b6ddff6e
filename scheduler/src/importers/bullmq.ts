/**
 * Imports BullMQ's schedulers from the JSON of `queue.getJobSchedulers()` or of the older `queue.getRepeatableJobs()`. An array contains
 * the entries of one queue; an object contains one such array for each queue name.
 */
import { eitherDay } from "./either-day.ts";
import { readFields, tellFields } from "./fields.ts";
import {
  Findings,
  type ImportOptions,
  isRow,
  numberOf,
  type Row,
  readJson,
  rowsOf,
  type SourceFile,
  textOf,
  within,
} from "./findings.ts";

const rowFields = readFields(
  "key name id pattern cron every tz offset limit iterationCount startDate endDate template next prevMillis",
);
const templateFields = readFields("data opts");

/** Matches the keys that older versions of BullMQ generated from the schedule or a hash. Such keys are not used as task names. */
const madeUp = /^[\da-f]{32}$|::|^[^:]*:[^:]*:\d*:/;

export function importBullmq(files: readonly SourceFile[], options: ImportOptions): Findings {
  const findings = new Findings(options);
  for (const file of files) {
    const content = readJson(file, findings);
    if (content === undefined) continue;
    const queues: [string, unknown][] = Array.isArray(content)
      ? [["", content]]
      : isRow(content)
        ? Object.entries(content)
        : [];
    const found = queues.map(([queue, rows]) => [queue, rowsOf(rows)] as const).filter(([, rows]) => rows.length > 0);
    if (found.length === 0)
      findings.problem(
        "",
        `${file.path} has no schedulers`,
        "Write JSON.stringify(await queue.getJobSchedulers(0, -1)) to it.",
      );
    for (const [queue, rows] of found) for (const row of rows) addScheduler(row, queue, options, findings);
  }
  return findings;
}

function addScheduler(row: Row, queue: string, options: ImportOptions, findings: Findings): void {
  const key = textOf(row.key);
  const handler = textOf(row.name);
  const source = key !== "" && !madeUp.test(key) ? key : textOf(row.id) || handler || key;
  const lost = (what: string, hint?: string) => findings.lost(source, what, hint);
  const pattern = textOf(row.pattern ?? row.cron);
  const period = numberOf(row.every);
  if (pattern === "" && period === undefined) {
    findings.problem(
      source,
      "it has neither a pattern nor every",
      "A repeat strategy of your own cannot be carried over.",
    );
    return;
  }
  const zone = textOf(row.tz);
  if (pattern !== "" && zone === "")
    findings.note(source, `has no tz, so it is taken to mean ${options.zone}`, "Say another with --zone.");
  const offset = numberOf(row.offset) ?? 0;
  const schedule =
    pattern !== ""
      ? { cron: eitherDay(pattern), zone: zone || options.zone }
      : { every: period, ...(offset === 0 ? {} : { anchor: timeOf(offset) }) };
  if (pattern !== "" && offset !== 0) lost(`its offset of ${offset} ms`);
  const limit = numberOf(row.limit);
  const isDone = limit !== undefined && (numberOf(row.iterationCount) ?? 0) >= limit;
  if (limit !== undefined && !isDone)
    lost(
      `its limit of ${limit} times, of which it had ${numberOf(row.iterationCount) ?? 0}`,
      "Remove the task when it is done.",
    );
  const opts = within(row, "template.opts");
  if (handler !== "" && handler !== source)
    findings.note(source, `was handled as ${handler}`, `Give a worker a handler called ${source}.`);
  tellFields(row, rowFields, source, findings);
  if (isRow(row.template)) tellFields(row.template, templateFields, source, findings, "template");
  const data = within(row, "template.data");
  const [fromMs, endMs] = [momentOf(row.startDate), momentOf(row.endDate)];
  for (const [name, ms] of [
    ["startDate", fromMs],
    ["endDate", endMs],
  ] as const)
    if (ms === undefined && row[name] !== undefined && row[name] !== null)
      lost(`its ${name} ${JSON.stringify(row[name])}, which is no time`);
  findings.add(
    source,
    source,
    {
      group: options.group ?? (queue === "" ? undefined : queue),
      schedule,
      slotPayload: data === null ? undefined : data,
      retry: retryOf(opts, source, findings),
    },
    // BullMQ may still fire exactly at the end date, while `untilMs` is exclusive, so 1 ms is added.
    {
      fromMs,
      untilMs: isDone ? options.nowMs : endMs === undefined ? undefined : endMs + 1,
      times:
        pattern !== ""
          ? { dialect: "cron-parser", text: pattern, zone: zone || options.zone }
          : { dialect: "interval", everyMs: period ?? 0, anchorMs: offset },
    },
  );
  for (const [name, value] of Object.entries(isRow(opts) ? opts : {})) {
    if (["attempts", "backoff", "repeat", "jobId", "timestamp", "prevMillis", "repeatJobKey"].includes(name)) continue;
    if (name === "priority" && (value === 0 || value === null)) continue;
    const hint =
      name === "priority"
        ? "There 1 is the first; here 9 is: set priority by hand."
        : name.startsWith("removeOn")
          ? "Retention says how long history is kept."
          : "";
    lost(`its option ${name}: ${JSON.stringify(value)}`, hint);
  }
}

function retryOf(opts: unknown, source: string, findings: Findings): unknown {
  const attempts = numberOf(within(opts, "attempts")) ?? 1;
  if (attempts <= 1) return undefined;
  const backoff = within(opts, "backoff");
  const plain = numberOf(backoff);
  if (backoff === undefined || backoff === null) return { attempts, backoff: "fixed", delay: 0, jitter: 0 };
  if (plain !== undefined) return { attempts, backoff: "fixed", delay: plain, jitter: 0 };
  const type = textOf(within(backoff, "type"));
  if (type !== "fixed" && type !== "exponential")
    findings.lost(
      source,
      `its back-off strategy ${type}, which is code of yours`,
      "It is exponential here: set retry by hand.",
    );
  return {
    attempts,
    backoff: type === "fixed" ? "fixed" : "exponential",
    delay: numberOf(within(backoff, "delay")) ?? 0,
    jitter: numberOf(within(backoff, "jitter")) ?? 0,
  };
}

/** Converts a number or a date text to epoch milliseconds; returns undefined for anything else. */
function momentOf(value: unknown): number | undefined {
  const ms = numberOf(value) ?? Date.parse(textOf(value));
  return Number.isNaN(ms) || Math.abs(ms) > 8.64e15 ? undefined : ms;
}

/** Converts epoch milliseconds to ISO 8601. A value that no date can hold is returned as digits, which the schedule's parser refuses. */
const timeOf = (ms: number): string => (Math.abs(ms) <= 8.64e15 ? new Date(ms).toISOString() : String(ms));
