/**
 * Real processes under real faults: docs/explain/reliability.md.
 *
 *   npm run prove -- faults [FAULT…]           only these faults; A+B: two at the same time. Default: every fault alone,
 *                                              in an order that the seed determines, then random pairs of faults
 *   … --coordination zookeeper|redis|postgres  coordination service; default all three, one after the other in each round
 *                                              (with --locks: postgres)
 *   … --rounds R                               every fault alone R times, each round with its own seeds; default 1,
 *                                              0: pairs only
 *   … --minutes M                              starts nothing new after M minutes, for each coordination
 *   … --pairs N                                number of pairs for each coordination; default: half the number of single
 *                                              faults; no pairs if faults are named
 *   … --seed S                                 default: a new seed each time
 *   … --within SECONDS                         the longest time from the end of the faults until the recovery; default 30
 *   … --locks                                  instead: locks whose holders are stopped, cut off and killed, with and without
 *                                              checks of fences; without them, the checks of the history must find a violation
 *   … --keep                                   keeps the records even if no rule is violated
 *   … --list, --json
 *
 * If the faults are interrupted (SIGINT, SIGTERM, an error), the closing line with the results so far is still printed.
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
/** The number of strikes on one cluster, more than one because starting its processes takes a large part of the time. */
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
    // Exit explicitly: channels to the processes may be closed already, and all processes end with this one.
    process.exit(tally.violations > 0 || ended.interrupted ? 1 : 0);
  };
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => close({ interrupted: signal }));
  // A bug in the harness can make it wait for an event that never occurs; then Node ends by itself.
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
      // After a strike without recovery, the remaining strikes get a new cluster.
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
