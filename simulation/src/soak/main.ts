/**
 * Runs a cluster of processes on a real PostgreSQL for hours, under steady load and with regular faults: docs/contributing/soak.md.
 *
 *   npm run prove -- soak [--hours H] [--faults-per-minute N] [--coordination URL] [--seed S] [--svg FILE] [--json]
 *   … --session-timeout DURATION  how long a silent process counts as alive: 6s, at least 1.5s
 *   … --slots N [--rate N]   slots in millions instead of the mixed load: N slots, `rate` of them due each second
 *   … --log FILE             versions, faults, counts of each minute and the result, as lines of JSON
 */
import { execFileSync } from "node:child_process";
import { appendFileSync, writeFileSync } from "node:fs";
import { availableParallelism, cpus, totalmem } from "node:os";
import { parseArgs } from "node:util";
import { parseDuration } from "../../../scheduler/src/base/duration.ts";
import { positiveNumber, wholeNumber } from "../option-numbers.ts";
import { Dice } from "../plan/dice.ts";
import { linesAsSvg, type Panel } from "./lines-chart.ts";
import { gridOf, type ManyAccount, periodMs } from "./many-slots.ts";
import { type Trend, trendOf } from "./slope.ts";
import { type Soaked, soak } from "./soak.ts";

const { values } = parseArgs({
  options: {
    hours: { type: "string", default: "2" },
    "faults-per-minute": { type: "string", default: "1" },
    coordination: { type: "string" },
    seed: { type: "string" },
    slots: { type: "string" },
    rate: { type: "string", default: "5000" },
    log: { type: "string" },
    "session-timeout": { type: "string", default: "6s" },
    svg: { type: "string", default: "soak.svg" },
    json: { type: "boolean", default: false },
  },
});
const hours = positiveNumber("hours", values.hours);
const faultsPerMinute = positiveNumber("faults-per-minute", values["faults-per-minute"]);
const seed = wholeNumber("seed", values.seed ?? String(Date.now() % 1_000_000), 0);
const grid =
  values.slots === undefined ? undefined : gridOf(wholeNumber("slots", values.slots), wholeNumber("rate", values.rate));
const hourMs = 3_600_000;
/** This share of the test is left out of trends: a process grows until it has executed all of its code once, which is not a leak. */
const warmUp = 0.2;

const say = (line: string) => {
  if (!values.json) process.stdout.write(`${line}\n`);
};
const record = (entry: object) => {
  if (values.log !== undefined) appendFileSync(values.log, `${JSON.stringify({ at: new Date(), ...entry })}\n`);
};
const length = grid ? `${grid.tasks * grid.rounds} slots of ${grid.tasks} tasks` : `${hours} h`;
say(`${length}, ${faultsPerMinute} faults a minute, seed ${seed}`);
record({
  kind: "began",
  command: ["npm run prove -- soak", ...process.argv.slice(2)].join(" "),
  ...(values.log !== undefined && { commit: execFileSync("git", ["rev-parse", "HEAD"], { encoding: "utf8" }).trim() }),
  seed,
  node: process.version,
  machine: `${availableParallelism()} × ${cpus()[0]?.model}, ${Math.round(totalmem() / 2 ** 30)} GiB, ${process.platform}`,
  ...(grid && { grid: { ...grid, periodMs } }),
});
const dice = new Dice(seed);
const soaked = await soak({
  lengthMs: hours * hourMs,
  faultsPerMinute,
  coordination: values.coordination,
  grid,
  sessionTimeoutMs: parseDuration(values["session-timeout"]),
  say,
  record,
  random: () => dice.between(0, 1),
});
const trends = trendsOf(soaked);
writeFileSync(values.svg, picture(soaked, trends));
report(soaked, trends);

/** Returns the trend of each series. Table sizes and row counts that never changed are left out, because the load uses few tables. */
function trendsOf({ sampler, beganMs, endedMs }: Soaked): Map<string, Trend> {
  const from = beganMs + warmUp * (endedMs - beganMs);
  const trends = new Map<string, Trend>();
  const moved = [...sampler.series()].filter(
    ([name, samples]) =>
      / (?:MB|rows)$/.test(name) === false || samples.some(({ value }) => value !== samples[0]?.value),
  );
  for (const [name, samples] of moved)
    trends.set(
      name,
      trendOf(
        samples
          .filter(({ atMs }) => atMs >= from)
          .map(({ atMs, value }) => ({ hours: (atMs - beganMs) / hourMs, value })),
      ),
    );
  return trends;
}

function report({ account, faults, deaths, title, beganMs, endedMs }: Soaked, trends: Map<string, Trend>): void {
  const { violations, ...sums } = account;
  say("");
  for (const [name, { median, perHour, last }] of trends)
    say(`${name.padEnd(34)} median ${round(median)}  last ${round(last)}  slope ${round(perHour)} an hour`);
  for (const { invariant, what, run } of violations)
    say(`VIOLATION of "${invariant}": ${what}${run === undefined ? "" : ` (run ${run})`}`);
  say(`the chart is ${values.svg}`);
  const slopes = Object.fromEntries([...trends].map(([name, { perHour }]) => [keyOf(name), round(perHour)]));
  const levels = Object.fromEntries([...trends].map(([name, { median }]) => [keyOf(name), round(median)]));
  const line = {
    hours: round((endedMs - beganMs) / hourMs),
    faults: faults.length,
    violations: violations.length,
    seed,
    slots_due: sums.slotsDue,
    runs: sums.runs,
    enqueued: sums.enqueued,
    missed: sums.missed,
    skipped: sums.skipped,
    executions: sums.executions,
    attempts_lost: sums.attemptsLost,
    taken_for_dead: deaths.length,
    ...(isMany(sums) && {
      lost: sums.lost,
      doubled: sums.doubled,
      early: sums.early,
      repeated: sums.repeated,
      lateness_p50_ms: sums.latenessMs.p50,
      lateness_p99_ms: sums.latenessMs.p99,
      lateness_max_ms: sums.latenessMs.max,
    }),
    recovery_max_ms: Math.max(0, ...faults.filter(({ judged }) => judged).map(({ recoveredMs }) => recoveredMs)),
    faults_not_judged: faults.filter(({ judged }) => !judged).length,
    store: title,
    slope_per_hour: slopes,
    median: levels,
    ...(violations.length > 0 ? { broken: violations.slice(0, 20) } : {}),
  };
  record({ kind: "result", ...line });
  process.stdout.write(`${JSON.stringify(line)}\n`);
  if (violations.length > 0) process.exitCode = 1;
}

function picture({ sampler, beganMs, faults, steady }: Soaked, trends: Map<string, Trend>): string {
  const series = sampler.series();
  const points = (name: string) =>
    (series.get(name) ?? []).map(({ atMs, value }) => [(atMs - beganMs) / 60_000, value] as const);
  const told = (name: string) => `${round(trends.get(name)?.perHour ?? 0)} an hour`;
  const each = (what: string): Panel => ({
    title: what,
    told: steady.map((who) => told(`${who} ${what}`)).join(", "),
    lines: steady.map((who) => ({ name: who, points: points(`${who} ${what}`) })),
  });
  const one = (title: string, ...names: string[]): Panel => ({
    title,
    told: names.map(told).join(", "),
    lines: names.map((name) => ({ name, points: points(name) })),
  });
  const tables = [...trends.keys()].filter((name) => name.endsWith(" MB") && series.has(name.replace(/ MB$/, " rows")));
  const largest = tables
    .toSorted((a, b) => (trends.get(b)?.last ?? 0) - (trends.get(a)?.last ?? 0))
    .slice(0, 6)
    .map((name) => name.replace(/ MB$/, ""));
  const panels = [
    each("rss MB"),
    each("heap MB"),
    each("external MB"),
    each("handles"),
    each("files"),
    one("connections", "connections"),
    one("runs", "live runs", "overdue runs"),
    one("lateness of first attempts", "lateness p50 ms", "lateness p99 ms"),
    ...largest.flatMap((name) => [
      one(`${name}: size`, `${name} MB`),
      one(`${name}: rows`, `${name} rows`, `${name} dead rows`),
    ]),
  ];
  const marks = faults.map(({ atMs }) => (atMs - beganMs) / 60_000);
  return linesAsSvg(
    panels,
    marks,
    `${faults.length} faults (dotted); slopes by Theil and Sen; docs/contributing/soak.md says how`,
  );
}

function isMany(sums: Omit<Soaked["account"], "violations">): sums is Omit<ManyAccount, "violations"> {
  return "lost" in sums;
}

function keyOf(name: string): string {
  return name.replace(/[^a-z0-9]+/gi, "_").toLowerCase();
}

function round(value: number): number {
  return Number.isInteger(value) ? value : Number(value.toPrecision(4));
}
