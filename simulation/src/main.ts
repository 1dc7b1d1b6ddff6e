/**
 * Simulates the whole cluster in one process in virtual time; a seed determines each simulation: docs/contributing/simulation.md.
 *
 *   npm run prove -- simulate [--seeds N] [--from S]  plays seeds S to S + N - 1; default: 200 from 1; --from 7,90: N of each
 *   … --seed S [--only 3,7,9] [--trace]               plays one seed, with only these of its acts, and prints all events
 *   … --mutants [--mutant NAME]                       plants bugs, which the seeds must find
 *   … --full                                          plays no small seeds
 *   … --minutes M                                     virtual time of each seed; default 10
 *   … --processes P                                   default: as many as there are cores, four at most
 *   … --json                                          prints only the closing line
 */
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { lockFigures } from "./check/locks/figures.ts";
import { plant } from "./mutants.ts";
import { positiveNumber, wholeNumber } from "./option-numbers.ts";
import { planOf } from "./plan/plan.ts";
import { type Figures, playSeeds } from "./play/campaign.ts";
import { tell } from "./play/report.ts";
import { only, shrink } from "./play/shrink.ts";
import { allPaths } from "./play/sometimes.ts";
import { Stages } from "./play/stages.ts";
import { tripwire } from "./world/tripwire.ts";

const { values } = parseArgs({
  options: {
    seeds: { type: "string", default: "200" },
    from: { type: "string", default: "1" },
    seed: { type: "string" },
    only: { type: "string" },
    full: { type: "boolean", default: false },
    minutes: { type: "string", default: "10" },
    processes: { type: "string", default: String(Math.min(4, availableParallelism())) },
    mutants: { type: "boolean", default: false },
    mutant: { type: "string" },
    trace: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  },
});
const url = process.env.CARILLON_TEST_POSTGRES_URL;
if (!url) throw new Error("CARILLON_TEST_POSTGRES_URL is not set: start this as `npm run prove -- simulate`");
const lengthMs = positiveNumber("minutes", values.minutes) * 60_000;
const count = wholeNumber("seeds", values.seeds);
const processes = wholeNumber("processes", values.processes);
const starts = values.from.split(",").map((from) => wholeNumber("from", from, 0));
const seed = values.seed === undefined ? undefined : wholeNumber("seed", values.seed, 0);
/** With fewer seeds than this, a path that no seed takes is not reported as an error. */
const seedsForPaths = 1_000;

const say = (text: string) => {
  if (!values.json) process.stdout.write(`${text}\n`);
};
tripwire.install();
if (values.mutants || values.mutant) await mutants();
else if (seed !== undefined) await one(seed);
else await many();

async function many(): Promise<void> {
  const ofEach = Array.from({ length: count }, (_, i) => i);
  const seeds = starts.flatMap((from) => ofEach.map((i) => from + i));
  const figures = await playSeeds({
    url: url as string,
    seeds,
    lengthMs,
    full: values.full,
    processes,
    onProgress: (done) => say(`${done} seeds`),
    onBroken: (seed, { invariant, what }) => say(`seed ${seed} breaks "${invariant}": ${what}`),
  });
  const [first] = figures.broken;
  if (first && !values.json) await one(first.seed);
  const untaken = allPaths.filter((path) => !figures.paths[path]);
  for (const [path, count] of Object.entries(figures.paths)) say(`sometimes ${path}: ${count}`);
  for (const path of untaken) say(`never ${path}`);
  close(figures, untaken);
}

function close({ seeds, broken, replayed, differing, statements, seconds, paths }: Figures, untaken: string[]): void {
  const line = {
    seeds,
    violations: broken.length,
    replayed,
    differing: differing.length,
    virtual_minutes: lengthMs / 60_000,
    seconds: Math.round(seconds),
    per_s: round(seeds / seconds),
    statements_per_seed: Math.round(statements / seeds),
    paths: Object.keys(paths).length,
    paths_never: untaken.length,
    ...(broken.length > 0
      ? { broken: broken.slice(0, 20).map(({ seed, violation }) => ({ seed, ...violation })) }
      : {}),
    ...(differing.length > 0 ? { differ: differing } : {}),
  };
  process.stdout.write(`${JSON.stringify(line)}\n`);
  const lacks = seeds >= seedsForPaths && untaken.length > 0;
  if (broken.length > 0 || differing.length > 0 || lacks) process.exitCode = 1;
}

/** Plays and reports one seed. If it violates an invariant, its plan is shrunk, unless its acts were chosen on the command line. */
async function one(seed: number): Promise<void> {
  const stages = await Stages.open(url as string, `one${process.pid}`);
  try {
    const whole = planOf(seed, lengthMs, values.full);
    const chosen = values.only === undefined ? undefined : values.only.split(",").filter((place) => place !== "none");
    let places = chosen?.map(Number);
    const verdict = await stages.play(places ? only(whole, places) : whole, true);
    if (verdict.violation && !places) {
      say(`seed ${seed} breaks "${verdict.violation.invariant}": making it smaller`);
      places = await shrink(whole, verdict.violation, (plan) => stages.play(plan));
    }
    const plan = places ? only(whole, places) : whole;
    const shown = await stages.play(plan, true);
    say(tell(plan, shown, places));
    if (values.trace) say(shown.trace.join(""));
    if (values.seed === undefined) return;
    const { violation, hash, statements, history } = shown;
    const locks = history.locks ? { locks: lockFigures(history.locks) } : {};
    const broken = violation ? { broken: [violation] } : {};
    const line = { seeds: 1, violations: violation ? 1 : 0, seed, hash, statements, ...locks, ...broken };
    process.stdout.write(`${JSON.stringify(line)}\n`);
    if (violation) process.exitCode = 1;
  } finally {
    await stages.close();
  }
}

async function mutants(): Promise<void> {
  const results = await plant({
    url: url as string,
    only: values.mutant,
    lengthMs,
    full: values.full,
    seeds: count,
    processes,
    onResult: ({ name, caughtBy, seed, what, tried, wanted }) =>
      say(
        caughtBy
          ? `caught  ${name}: ${caughtBy}, by seed ${seed}, the ${tried}th: ${what}`
          : `ALIVE   ${name}: ${tried} seeds, wanted: ${wanted}`,
      ),
  });
  const caught = results.filter(({ caughtBy }) => caughtBy !== undefined);
  const alive = results.filter(({ caughtBy }) => caughtBy === undefined).map(({ name }) => name);
  const caughtBy = [...new Set(caught.map((result) => result.caughtBy))];
  const seeds = results.reduce((sum, { tried }) => sum + tried, 0);
  process.stdout.write(
    `${JSON.stringify({ seeds, violations: 0, mutants: results.length, caught: caught.length, caught_by: caughtBy, alive })}\n`,
  );
  if (alive.length > 0) process.exitCode = 1;
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
