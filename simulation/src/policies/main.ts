/**
 * Plays random scenarios of tasks, policies and acts on a test tower with simulated time, and checks the rules that the documentation
 * states: docs/contributing/simulation-bugs.md.
 *
 *   npm run prove -- policies [--seeds N] [--from S]   plays the scenarios of seeds S to S + N - 1; default: 300 seeds from 1
 *   … --seed S                                         plays one scenario and prints all observations; if it breaks a rule, it is shrunk
 *   … --play FILE                                      plays the scenario in FILE: JSON, as printed for a broken rule
 *   … --mutants [--mutant NAME]                        plants bugs, and checks that the rules find each of them
 *   … --processes [--beside N]                         plays in real time, N at once (default 6), with workers killed by SIGKILL; 60 seeds
 *                                                      by default; with --seed S and --seeds N, plays seed S N times
 *   … --react MS                                       with --processes: the longest allowed time of a reaction; default 3000
 *   … --rule NAME                                      checks only this rule
 *   … --until                                          stops after the first scenario that breaks a rule
 *   … --json                                           prints only the final line
 */
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import type { Violation } from "../history.ts";
import { wholeNumber } from "../option-numbers.ts";
import { Campaign } from "./campaign.ts";
import { scenarioOf } from "./draw.ts";
import { plantAll } from "./plant.ts";
import { playOnProcesses } from "./processes.ts";
import { firstBroken } from "./rules/rules.ts";
import type { Scenario } from "./scenario.ts";
import { tell } from "./tell.ts";
import { work } from "./worker-process.ts";

const { values } = parseArgs({
  options: {
    seeds: { type: "string" },
    from: { type: "string", default: "1" },
    seed: { type: "string" },
    play: { type: "string" },
    mutants: { type: "boolean", default: false },
    mutant: { type: "string" },
    processes: { type: "boolean", default: false },
    beside: { type: "string", default: "6" },
    react: { type: "string", default: "3000" },
    work: { type: "string" },
    rule: { type: "string" },
    until: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  },
});
const url = process.env.CARILLON_TEST_POSTGRES_URL;
if (!url) throw new Error("CARILLON_TEST_POSTGRES_URL is not set: start this as `npm run prove -- policies`");
const say = (text: string) => {
  if (!values.json) process.stdout.write(`${text}\n`);
};
const close = (line: Record<string, unknown>, failed: boolean) => {
  process.stdout.write(`${JSON.stringify(line)}\n`);
  if (failed) process.exitCode = 1;
};

const count = wholeNumber("seeds", values.seeds ?? (values.processes ? "60" : "300"));
const from = wholeNumber("from", values.from, 0);
const seed = values.seed === undefined ? undefined : wholeNumber("seed", values.seed, 0);
const campaign = new Campaign(url);
try {
  if (values.work !== undefined) await work(JSON.parse(values.work));
  else if (values.processes) await onProcesses(url);
  else if (values.mutants || values.mutant !== undefined) await mutants();
  else if (values.play !== undefined) await one(JSON.parse(readFileSync(values.play, "utf8")));
  else if (seed !== undefined) await one(scenarioOf(seed));
  else await many();
} finally {
  await campaign.close();
}

async function many(): Promise<void> {
  const seeds = Array.from({ length: count }, (_, i) => from + i);
  const began = process.hrtime.bigint();
  const { broken, ...counts } = await campaign.play(
    seeds,
    (seed, violation) => violation && say(`seed ${seed} breaks "${violation.invariant}": ${violation.what}`),
    { untilBroken: values.until, rule: values.rule },
  );
  const seconds = Math.round(Number(process.hrtime.bigint() - began) / 1e9);
  const [first] = broken;
  if (first && !values.json && !values.until) say(JSON.stringify(await campaign.smaller(first)));
  const cpu = process.cpuUsage();
  const told = broken.slice(0, 20).map(({ scenario: { seed }, violation, told }) => ({
    seed,
    ...violation,
    ...(told.length > 0 ? { log: told.slice(0, 10) } : {}),
  }));
  const line = { ...counts, violations: broken.length, seconds, cpu_s: Math.round((cpu.user + cpu.system) / 1e6) };
  close({ ...line, ...(told.length > 0 ? { broken: told } : {}) }, broken.length > 0);
}

/** Plays scenarios in real time, several at once. Scenarios about calendars are left out, because they last for days. */
async function onProcesses(url: string): Promise<void> {
  const scenarios = Array.from({ length: count }, (_, i) => scenarioOf(from + i)).filter(({ holidays }) => !holidays);
  const asked =
    seed === undefined ? scenarios : Array.from({ length: values.seeds ? count : 1 }, () => scenarioOf(seed));
  const waiting = [...asked];
  const reactMs = wholeNumber("react", values.react);
  const broken: (Violation & { seed: number })[] = [];
  const counts = { scenarios: asked.length, runs: 0, tries: 0, kills: 0 };
  const began = process.hrtime.bigint();
  const player = async () => {
    for (let scenario = waiting.shift(); scenario; scenario = waiting.shift()) {
      const seen = await playOnProcesses(url, scenario, reactMs);
      counts.runs += seen.runs.length;
      counts.tries += seen.tries.length;
      counts.kills += seen.done.filter(({ act }) => act.op === "lose").length;
      const violation = firstBroken(seen, values.rule);
      if (violation) broken.push({ seed: scenario.seed, ...violation });
      // The observations are printed at once, because in real time the same seed may give another result the next time.
      if (violation || seed !== undefined) say(tell(seen));
      say(
        `seed ${scenario.seed} ${violation ? `breaks "${violation.invariant}": ${violation.what}` : "breaks no rule"}`,
      );
    }
  };
  await Promise.all(Array.from({ length: wholeNumber("beside", values.beside) }, player));
  const seconds = Math.round(Number(process.hrtime.bigint() - began) / 1e9);
  const line = { ...counts, violations: broken.length, seconds };
  close({ ...line, ...(broken.length > 0 ? { broken } : {}) }, broken.length > 0);
}

async function one(scenario: Scenario): Promise<void> {
  const seen = await campaign.see(scenario);
  const violation = firstBroken(seen);
  say(tell(seen));
  if (violation) {
    say(`breaks "${violation.invariant}": ${violation.what}`);
    say(JSON.stringify(await campaign.smaller({ scenario, violation })));
  }
  close(
    { scenarios: 1, violations: violation ? 1 : 0, ...(violation ? { broken: [violation] } : {}) },
    violation !== undefined,
  );
}

async function mutants(): Promise<void> {
  const planted = await plantAll(values.mutant, count, ({ name, caughtBy, what, seed, tried }) =>
    say(
      caughtBy
        ? `caught  ${name}: ${caughtBy}, by seed ${seed}, the ${tried}th: ${what}`
        : `ALIVE   ${name}: ${tried} seeds`,
    ),
  );
  const alive = planted.filter(({ caughtBy }) => caughtBy === undefined).map(({ name }) => name);
  const caughtBy = [...new Set(planted.map((one) => one.caughtBy).filter((name) => name !== undefined))];
  close(
    { mutants: planted.length, caught: planted.length - alive.length, caught_by: caughtBy, alive },
    alive.length > 0,
  );
}
