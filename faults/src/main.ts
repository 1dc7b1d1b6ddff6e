/**
 * Real processes under real faults: docs/reliability.md.
 *
 *   npm run prove -- faults [FAULT…]           each of these alone; A+B: two at the same time. Default: every fault alone,
 *                                              in an order that the seed decides, then random pairs of them
 *   … --coordination zookeeper|redis|postgres  beside the store; default all three, one after the other in each round
 *   … --rounds R                               every fault alone R times, each round on seeds of its own; default 1,
 *                                              0: pairs alone
 *   … --minutes M                              begins nothing new after that, for each coordination
 *   … --pairs N                                for each coordination; default: half as many as faults alone
 *   … --seed S                                 default a new one each time
 *   … --within SECONDS                         the longest time from the end of the faults until the recovery; default 30
 *   … --locks                                  instead: locks whose holders are stopped, cut off and killed, with fences
 *                                              that are checked, and without; the checks must find the second
 *   … --keep                                   keeps the records, also if no rule is broken
 *   … --list, --json
 *
 * If it is interrupted (SIGINT, SIGTERM, a mistake of its own), the same closing line reports the work done up to then.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { positiveNumber, wholeNumber } from "../../simulation/src/option-numbers.ts";
import { type Coordination, coordinations } from "./coordination.ts";
import { type Episode, nameOf, play, type Strike } from "./episode.ts";
import { allFaults } from "./faults/all.ts";
import { contest } from "./locks/contest.ts";
import { linesOf, tell } from "./report.ts";
import { Servers } from "./servers.ts";
import { Tally } from "./tally.ts";
import { type Turn, turnsOf } from "./turns.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    coordination: { type: "string", default: "all" },
    rounds: { type: "string", default: "1" },
    minutes: { type: "string" },
    pairs: { type: "string" },
    seed: { type: "string" },
    within: { type: "string", default: "30" },
    locks: { type: "boolean", default: false },
    keep: { type: "boolean", default: false },
    list: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  },
});
const sessionTimeoutMs = 3_000;
const settleMs = 2_500;
const recoveryMs = positiveNumber("within", values.within) * 1_000;
const minutes = values.minutes === undefined ? Number.POSITIVE_INFINITY : positiveNumber("minutes", values.minutes);
const rounds = wholeNumber("rounds", values.rounds, 0);
/** Strikes on one cluster: starting its processes takes a good part of the time. */
const strikesEach = 4;

const say = (text: string) => {
  if (!values.json) process.stdout.write(`${text}\n`);
};

if (values.list) list();
else if (values.locks) await locks();
else await main();

function list(): void {
  for (const { name, what, needs } of allFaults)
    process.stdout.write(`${name.padEnd(28)} ${what}${needs ? ` (needs ${needs})` : ""}\n`);
}

async function main(): Promise<void> {
  const seed = values.seed === undefined ? Math.floor(Math.random() * 1e9) : wholeNumber("seed", values.seed, 0);
  const chosen = values.coordination === "all" ? coordinations : [one(values.coordination)];
  const pairs = values.pairs === undefined ? undefined : wholeNumber("pairs", values.pairs, 0);
  const turns = turnsOf({ named: positionals, coordinations: chosen, rounds, pairs, seed });
  const tally = new Tally(turns);
  const folder = mkdtempSync(join(tmpdir(), "carillon-faults-"));
  const began = performance.now();
  const close = (ended: { interrupted?: string }): never => {
    if (tally.violations === 0 && !ended.interrupted && !values.keep) rmSync(folder, { recursive: true });
    else say(`everything that was written down is in ${folder}`);
    const seconds = Math.round((performance.now() - began) / 1_000);
    process.stdout.write(`${JSON.stringify({ seed, ...tally.line(), seconds, ...ended })}\n`);
    // Some of the processes may have closed their channel; none outlives this one.
    process.exit(tally.violations > 0 || ended.interrupted ? 1 : 0);
  };
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => close({ interrupted: signal }));
  // After a bug in the harness, it may wait for an event that never comes.
  process.once("beforeExit", () => close({ interrupted: "nothing is left that could go on" }));
  const leftMs = new Map(chosen.map((coordination) => [coordination, minutes * 60_000]));
  try {
    for (const turn of turns) {
      const from = performance.now();
      const left = leftMs.get(turn.coordination) as number;
      if (left > 0) await take(turn, from + left, tally, folder);
      leftMs.set(turn.coordination, left - (performance.now() - from));
    }
  } catch (error) {
    close({ interrupted: String((error as Error).stack) });
  }
  close({});
}

async function locks(): Promise<void> {
  const coordination = values.coordination === "all" ? "postgres" : one(values.coordination);
  const servers = await Servers.start(coordination);
  try {
    const [unfenced, fenced] = await Promise.all([
      contest(servers, false),
      contest(servers, true, values.rounds === "1" ? 0 : rounds),
    ]);
    say(`unfenced: ${unfenced.violation?.what ?? "NOT FOUND OUT"}`);
    say(`fenced: ${fenced.violation?.what ?? `${fenced.refused} late writes refused, none taken`}`);
    process.stdout.write(`${JSON.stringify({ coordination, unfenced, fenced })}\n`);
    if (!unfenced.violation || fenced.violation || fenced.refused === 0) process.exitCode = 1;
  } finally {
    await servers.close();
  }
}

function one(name: string): Coordination {
  const found = coordinations.find((known) => known === name);
  if (!found) throw new Error(`--coordination is ${coordinations.join(", ")} or all, not ${name}`);
  return found;
}

async function take(turn: Turn, deadline: number, tally: Tally, folder: string): Promise<void> {
  const { coordination, round, seed, pairs } = turn;
  const what = pairs ? "pairs" : `round ${round}, ${turn.strikes.length} strikes`;
  say(`${coordination}: ${what}, seed ${seed}, session timeout ${sessionTimeoutMs} ms`);
  const servers = await Servers.start(coordination);
  try {
    for (let i = 0; i < turn.strikes.length && performance.now() < deadline; ) {
      const some = turn.strikes.slice(i, i + strikesEach);
      const episode = await play({
        servers,
        seed: seed + i,
        strikes: some,
        sessionTimeoutMs,
        settleMs,
        recoveryMs,
        folder,
        onStrike: (strike, tookMs) => {
          tally.struck(turn, strike, tookMs);
          const took =
            tookMs === undefined ? `NOT RECOVERED within ${recoveryMs}` : `recovered after ${Math.round(tookMs)}`;
          say(`  ${nameOf(strike).padEnd(50)} ${took} ms`);
        },
      });
      tally.checked(episode.history);
      const { violation, recoveries } = episode;
      if (violation) tally.broke(violation, turn, seed + i, some);
      if (violation || values.keep) keep(coordination, seed + i, some, episode, folder);
      // Strikes after one from which the cluster did not recover get a cluster of their own.
      i += recoveries.length;
    }
  } finally {
    await servers.close();
  }
}

function keep(coordination: Coordination, seed: number, strikes: Strike[], episode: Episode, folder: string): void {
  const { violation, history, schema } = episode;
  const lines = linesOf(history).map(({ atMs, what }) => `${(atMs / 1_000).toFixed(3)} ${what}\n`);
  writeFileSync(join(folder, `${schema}.trace`), lines.join(""));
  writeFileSync(join(folder, `${schema}.history.json`), JSON.stringify(history));
  if (!violation) return;
  say(tell(history, violation));
  say(`again: npm run prove -- faults ${strikes.map(nameOf).join(" ")} --coordination ${coordination} --seed ${seed}`);
}
