/** Imports pg-boss schedules from the rows of its table `schedule` as JSON, or from the result of `boss.getSchedules()`. */
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
  "name key kind cron expression timezone data options created_on updated_on createdOn updatedOn",
);

/** pg-boss's defaults (version 10 and newer) for schedules without these options. */
const usual = { retryLimit: 2, expireInSeconds: 900 };
const carried = new Set(
  "tz key missed retryLimit retryDelay retryBackoff retryDelayMax expireInSeconds expireInMinutes expireInHours priority".split(
    " ",
  ),
);

export function importPgBoss(files: readonly SourceFile[], options: ImportOptions): Findings {
  const findings = new Findings(options);
  let unsaid = false;
  for (const file of files) {
    const content = readJson(file, findings);
    if (content === undefined) continue;
    const rows = rowsOf(isRow(content) ? (content.schedule ?? content.rows) : content);
    if (rows.length === 0)
      findings.problem("", `${file.path} has no schedules`, "Write select json_agg(s) from pgboss.schedule s to it.");
    for (const row of rows) {
      unsaid ||=
        within(optionsOf(row), "retryLimit") === undefined || within(optionsOf(row), "expireInSeconds") === undefined;
      addSchedule(row, options, findings);
    }
  }
  if (unsaid)
    findings.note(
      "",
      "where a schedule does not say, 2 retries and 15 minutes are taken, pg-boss's defaults",
      "A queue of yours may say otherwise: see its retry_limit and expire_seconds.",
    );
  return findings;
}

/** Returns the value of the `options` column. Some exports write this column as JSON text, which is parsed. */
function optionsOf(row: Row): unknown {
  const { options } = row;
  if (typeof options !== "string") return options;
  try {
    return JSON.parse(options);
  } catch {
    return undefined; // `addSchedule` reports the unreadable options as lost.
  }
}

function addSchedule(row: Row, options: ImportOptions, findings: Findings): void {
  const key = textOf(row.key);
  const source = key === "" ? textOf(row.name) : `${textOf(row.name)}:${key}`;
  const lost = (what: string, hint?: string) => findings.lost(source, what, hint);
  const kind = textOf(row.kind) || "cron";
  if (kind !== "cron") {
    findings.problem(source, `its recurrence is of the kind ${kind}`, "Write its schedule by hand.");
    return;
  }
  const said = optionsOf(row);
  if (typeof row.options === "string" && said === undefined) lost(`its options ${row.options}, which are not JSON`);
  if (key !== "")
    findings.note(source, `was sent to the queue ${textOf(row.name)}`, `Give a worker a handler called ${source}.`);
  const retryLimit = numberOf(within(said, "retryLimit")) ?? usual.retryLimit;
  const backoff = within(said, "retryBackoff") === true;
  const delay = numberOf(within(said, "retryDelay")) ?? 0;
  const delayMax = numberOf(within(said, "retryDelayMax"));
  const expire =
    numberOf(within(said, "expireInSeconds")) ??
    scaled(within(said, "expireInMinutes"), 60) ??
    scaled(within(said, "expireInHours"), 3_600) ??
    usual.expireInSeconds;
  const missed = textOf(within(said, "missed")) || "skip";
  const priority = numberOf(within(said, "priority")) ?? 0;
  if (priority < 0 || priority > 4) lost(`priority ${priority}: 0 (last) to 9 (first) are possible, and 5 is usual`);
  const text = textOf(row.cron ?? row.expression);
  const zone = textOf(row.timezone) || textOf(within(said, "tz")) || "UTC";
  const given = {
    group: options.group,
    schedule: { cron: eitherDay(text), zone },
    slotPayload: row.data === null ? undefined : row.data,
    priority: Math.max(0, Math.min(9, 5 + priority)),
    // pg-boss starts a slot up to one minute late; after that the slot counts as missed.
    misfire: { policy: missed === "all" ? "all" : missed === "once" ? "fire_once" : "skip", after: "1m" },
    retry:
      retryLimit === 0
        ? undefined
        : {
            attempts: retryLimit + 1,
            backoff: backoff ? "exponential" : "fixed",
            delay: `${backoff ? Math.max(1, delay) : delay}s`,
            ...(backoff && delayMax !== undefined ? { maxDelay: `${delayMax}s` } : {}),
            ...(backoff ? {} : { jitter: 0 }),
          },
    timeout: `${expire}s`,
  };
  tellFields(row, rowFields, source, findings);
  findings.add(source, source, given, { times: { dialect: "cron-parser", text, zone } });
  for (const [name, value] of Object.entries(isRow(said) ? said : {}))
    if (!carried.has(name) && value !== null)
      lost(
        `its option ${name}: ${JSON.stringify(value)}`,
        name.startsWith("singleton")
          ? "See overlap and limit."
          : name === "deadLetter"
            ? "What fails for good is a dead letter: carillon dead list."
            : "",
      );
}

const scaled = (value: unknown, by: number): number | undefined => {
  const number = numberOf(value);
  return number === undefined ? undefined : number * by;
};
