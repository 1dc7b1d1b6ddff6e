/**
 * Random workers send polls by HTTP to two servers on one store: invalid, repeated, reordered and concurrent polls, with lost answers,
 * lost sessions, restarted servers and revoked keys. The answers are checked against the tables of docs/reference/worker-failures.md.
 *
 *   npm run prove -- workers [--polls N] [--seed S]    sends N polls; default 100,000 from seed 1, in plays of 5,000 with seeds S, S + 1 …
 *   … --kill                                           servers are processes that get SIGKILL; otherwise they run in this process
 *   … --mutants [--mutant NAME]                        plants bugs; each must be found within N polls, at most 400
 *   … --json                                           prints only the final line
 */
import { parseArgs } from "node:util";
import { wholeNumber } from "../option-numbers.ts";
import { listen } from "./nodes.ts";
import { plantAll } from "./plant.ts";
import { play } from "./play.ts";

const { values } = parseArgs({
  options: {
    polls: { type: "string", default: "100000" },
    seed: { type: "string", default: "1" },
    kill: { type: "boolean", default: false },
    mutants: { type: "boolean", default: false },
    mutant: { type: "string" },
    json: { type: "boolean", default: false },
    serve: { type: "string" },
  },
});
const pollsPerPlay = 5_000;
const pollsPerMutant = 400;
const shownMost = 20;
const wanted = wholeNumber("polls", values.polls);
const firstSeed = wholeNumber("seed", values.seed, 0);

const say = (text: string) => {
  if (!values.json) process.stdout.write(`${text}\n`);
};
const close = (line: Record<string, unknown>, failed: boolean) => {
  process.stdout.write(`${JSON.stringify(line)}\n`);
  if (failed) process.exitCode = 1;
};

if (values.serve !== undefined) await serve(values.serve);
else if (values.mutants || values.mutant !== undefined) await mutants();
else await many();

/** Runs a server in this process until the parent process ends. */
async function serve(options: string): Promise<void> {
  process.stdin.resume().once("close", () => process.exit(1));
  const server = await listen(JSON.parse(options));
  process.stdout.write(`${server.listening}\n`);
}

async function many(): Promise<void> {
  const url = process.env.CARILLON_TEST_POSTGRES_URL;
  if (!url) throw new Error("CARILLON_TEST_POSTGRES_URL is not set: start this as `npm run prove -- workers`");
  const began = process.hrtime.bigint();
  const counts = { plays: 0, polls: 0, claims: 0, downs: 0 };
  const statuses: Record<string, number> = {};
  const broken: { seed: number; invariant: string; what: string }[] = [];
  for (let seed = firstSeed; counts.polls < wanted; seed++) {
    const played = await play({ url, seed, polls: Math.min(pollsPerPlay, wanted - counts.polls), kill: values.kill });
    counts.plays++;
    counts.polls += played.polls;
    counts.claims += played.claims;
    counts.downs += played.downs;
    for (const [status, count] of Object.entries(played.statuses)) statuses[status] = (statuses[status] ?? 0) + count;
    for (const violation of played.violations) broken.push({ seed, ...violation });
    say(`seed ${seed}: ${played.polls} polls, ${played.claims} claims, ${played.violations.length} violations`);
    for (const { invariant, what } of played.violations.slice(0, shownMost)) say(`  breaks "${invariant}": ${what}`);
  }
  const seconds = Math.round(Number(process.hrtime.bigint() - began) / 1e9);
  close(
    {
      ...counts,
      statuses,
      violations: broken.length,
      seconds,
      ...(broken.length > 0 ? { broken: broken.slice(0, shownMost) } : {}),
    },
    broken.length > 0,
  );
}

async function mutants(): Promise<void> {
  const planted = await plantAll(values.mutant, Math.min(pollsPerMutant, wanted), ({ name, caughtBy, what }) =>
    say(caughtBy ? `caught  ${name}: ${caughtBy}: ${what}` : `ALIVE   ${name}`),
  );
  const alive = planted.filter(({ caughtBy }) => caughtBy === undefined).map(({ name }) => name);
  const caughtBy = [...new Set(planted.map((one) => one.caughtBy).filter((name) => name !== undefined))];
  close(
    { mutants: planted.length, caught: planted.length - alive.length, caught_by: caughtBy, alive },
    alive.length > 0,
  );
}
