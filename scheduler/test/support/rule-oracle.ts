/** Creates random recurrence rules, and expands them with python-dateutil. */
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

export type Chance = () => number;

export interface RandomRule {
  rule: string;
  /** The local time of the start, as if it were UTC, in ms. */
  startMs: number;
  /** Local times that are added to and excluded from the rule, as if they were UTC, in ms. */
  rdate: number[];
  exdate: number[];
  /** The end of the compared window, as a local time in ms. */
  endMs: number;
}

const dayMs = 86_400_000;
const codes = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"];
/** The length of the compared window in days, by frequency. */
const reach: { [frequency: string]: number } = {
  YEARLY: 365 * 25,
  MONTHLY: 365 * 8,
  WEEKLY: 365 * 3,
  DAILY: 500,
  HOURLY: 40,
  MINUTELY: 3,
  SECONDLY: 0.2,
};

const pick = <T>(chance: Chance, items: readonly T[]): T => items[Math.floor(chance() * items.length)] as T;
const between = (chance: Chance, from: number, to: number) => from + Math.floor(chance() * (to - from + 1));
const some = (chance: Chance, most: number, one: () => number): number[] => [
  ...new Set(Array.from({ length: between(chance, 1, most) }, one)),
];
const signed = (chance: Chance, to: number) => between(chance, 1, to) * (chance() < 0.3 ? -1 : 1);

/** Formats a time for iCalendar, such as "20260106T090000". */
export const basicText = (ms: number): string => new Date(ms).toISOString().replace(/[:-]|\.\d+Z/g, "");

/** @param aroundMs a local time in ms; the rule starts up to half a window, or with BYSETPOS up to a week more, before it */
export function randomRule(
  chance: Chance,
  aroundMs: number,
  frequencies: readonly string[] = Object.keys(reach),
): RandomRule {
  const frequency = pick(chance, frequencies);
  const isSubDaily = (reach[frequency] as number) <= 40;
  const parts = [`FREQ=${frequency}`];
  const put = (odds: number, part: () => string) => {
    if (chance() < odds) parts.push(part());
  };
  const list = (values: readonly (number | string)[]) => values.join(",");
  if (chance() < 0.6) {
    const most = isSubDaily ? pick(chance, [3, 24, 100, 1_000]) : pick(chance, [2, 3, 6, 13]);
    parts.push(`INTERVAL=${between(chance, 1, most)}`);
  }
  const wkst = chance() < 0.4 ? between(chance, 0, 6) : 0;
  put(0.3, () => `BYMONTH=${list(some(chance, 5, () => between(chance, 1, 12)))}`);
  if (frequency !== "WEEKLY") put(0.25, () => `BYMONTHDAY=${list(some(chance, 4, () => signed(chance, 31)))}`);
  if (frequency === "YEARLY" || isSubDaily)
    put(0.15, () => `BYYEARDAY=${list(some(chance, 6, () => signed(chance, 366)))}`);
  const mayNumber = frequency === "YEARLY" || frequency === "MONTHLY";
  // Weeks 52 and 53, counted from either end, are left out, because dateutil is wrong for weeks that extend over the end of a year.
  if (frequency === "YEARLY" && chance() < 0.2) {
    parts.push(`BYWEEKNO=${list(some(chance, 4, () => signed(chance, 51)))}`);
    parts.push(`BYDAY=${list(codes.filter(() => chance() < 0.5).concat("TH"))}`);
  } else if (mayNumber && chance() < 0.3) {
    const most = frequency === "YEARLY" && !parts.some((part) => part.startsWith("BYMONTH=")) ? 53 : 5;
    parts.push(
      `BYDAY=${list([...new Set(some(chance, 3, () => signed(chance, most)).map((nth) => `${nth}${pick(chance, codes)}`))])}`,
    );
  } else put(0.35, () => `BYDAY=${list(codes.filter(() => chance() < 0.4).concat(pick(chance, codes)))}`);
  put(isSubDaily ? 0.2 : 0.3, () => `BYHOUR=${list(some(chance, 3, () => between(chance, 0, 23)))}`);
  put(0.2, () => `BYMINUTE=${list(some(chance, 3, () => between(chance, 0, 59)))}`);
  put(0.15, () => `BYSECOND=${list(some(chance, 3, () => between(chance, 0, 59)))}`);
  if (parts.some((part) => /^BY/.test(part)))
    put(0.25, () => `BYSETPOS=${list(some(chance, 3, () => signed(chance, pick(chance, [2, 5, 40]))))}`);
  if (wkst !== 0) parts.push(`WKST=${codes[wkst]}`);
  const spanMs = (reach[frequency] as number) * dayMs;
  let startMs = aroundMs - Math.floor((chance() * spanMs) / 2 / 1000) * 1000;
  if (chance() < 0.5) startMs = Math.floor(startMs / 60_000) * 60_000;
  // With BYSETPOS, dateutil lets the first week begin with the start, so the start is moved to the first day of its week.
  if (frequency === "WEEKLY" && parts.some((part) => part.startsWith("BYSETPOS")))
    startMs -= ((((Math.floor(startMs / dayMs) + 3) % 7) - wkst + 7) % 7) * dayMs;
  const endMs = startMs + spanMs;
  const end = chance();
  if (end < 0.15) parts.push(`COUNT=${between(chance, 1, 60)}`);
  else if (end < 0.3) parts.push(`UNTIL=${basicText(startMs + Math.floor((chance() * spanMs) / 1000) * 1000)}`);
  return { rule: parts.join(";"), startMs, rdate: [], exdate: [], endMs };
}

export const mostTimes = 250;

/**
 * Expands each rule with dateutil: at most `mostTimes` times up to the end of its window.
 * @returns for each rule, its local times as if they were UTC, in ms; null: dateutil gave up
 */
export async function expandedRules(rules: readonly RandomRule[]): Promise<(number[] | null)[]> {
  const python = process.env.CARILLON_TEST_DATEUTIL;
  if (!python) throw new Error("CARILLON_TEST_DATEUTIL is not set: run the tests with `npm test`");
  const lines = (name: string, times: readonly number[]) =>
    times.length === 0 ? [] : [`${name}:${times.map(basicText).join(",")}`];
  const items = rules.map(({ rule, startMs, rdate, exdate, endMs }) => ({
    text: [`DTSTART:${basicText(startMs)}`, `RRULE:${rule}`, ...lines("RDATE", rdate), ...lines("EXDATE", exdate)].join(
      "\n",
    ),
    end: new Date(endMs).toISOString().slice(0, 19),
    most: mostTimes,
  }));
  const child = spawn(python, [fileURLToPath(new URL("expand-rules.py", import.meta.url))], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  const code = new Promise<number | null>((resolve, reject) => child.on("error", reject).on("close", resolve));
  child.stdin.end(JSON.stringify(items));
  if ((await code) !== 0) throw new Error("dateutil could not expand the rules: see above");
  const expanded = JSON.parse(output) as (string[] | null)[];
  return expanded.map((times) => times?.map((at) => Date.parse(`${at}Z`)) ?? null);
}
