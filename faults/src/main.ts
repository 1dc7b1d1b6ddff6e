/**
 * Real processes under real faults: docs/reliability.md.
 *
 *   npm run faults -- [FAULT…]                  each of these alone; A+B: two at the same time. Default: every fault alone,
 *                                               in an order that the seed decides, then pairs of them by chance
 *   … --coordination zookeeper|redis|postgres   beside the store; default all three, one after the other
 *   … --rounds R                                of each fault; default 1
 *   … --minutes M                               begins nothing new after that, for each coordination
 *   … --pairs N                                 default: half as many as there are faults
 *   … --seed S                                  default a new one each time
 *   … --locks                                   instead: a lock whose holder is stopped, with fences that are looked at, and
 *                                               without; the second has to be found out
 *   … --keep                                    what was written down is kept, also where nothing is broken
 *   … --list, --json
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { Violation } from "../../simulation/src/history.ts";
import { Dice } from "../../simulation/src/plan.ts";
import { type Coordination, coordinations } from "./coordination.ts";
import { type Episode, nameOf, play, recoveryMs, type Strike } from "./episode.ts";
import { allFaults, faultsFor } from "./faults/all.ts";
import type { Fault } from "./faults/fault.ts";
import { contest } from "./locks/contest.ts";
import { type Figures, figuresOf, linesOf, tell } from "./report.ts";
import { Servers } from "./servers.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    coordination: { type: "string", default: "all" },
    rounds: { type: "string", default: "1" },
    minutes: { type: "string" },
    pairs: { type: "string" },
    seed: { type: "string" },
    locks: { type: "boolean", default: false },
    keep: { type: "boolean", default: false },
    list: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  },
});
const sessionTimeoutMs = 3_000;
const settleMs = 2_500;
/** On one cluster: starting its processes is a good part of the time. */
const strikesEach = 4;

const say = (text: string) => {
  if (!values.json) process.stdout.write(`${text}\n`);
};

interface Struck {
  coordination: Coordination;
  strike: string;
  tookMs: number | undefined;
}
const struck: Struck[] = [];
const broken: (Violation & { coordination: Coordination; seed: number; strikes: string[] })[] = [];
const sums: Figures = { runs: 0, executions: 0, slots: 0, operations: 0, overlapped: 0 };

if (values.list) list();
else if (values.locks) await locks();
else await main();

function list(): void {
  for (const { name, what, needs } of allFaults)
    process.stdout.write(`${name.padEnd(28)} ${what}${needs ? ` (needs ${needs})` : ""}\n`);
}

async function main(): Promise<void> {
  const chosen = values.coordination === "all" ? coordinations : [one(values.coordination)];
  const seed = values.seed === undefined ? Math.floor(Math.random() * 1e9) : Number(values.seed);
  const folder = mkdtempSync(join(tmpdir(), "carillon-faults-"));
  const began = performance.now();
  for (const coordination of chosen) await under(coordination, seed, folder);
  if (broken.length === 0 && !values.keep) rmSync(folder, { recursive: true });
  else say(`everything that was written down is in ${folder}`);
  const recoveries = struck.flatMap(({ tookMs }) => (tookMs === undefined ? [] : [tookMs])).sort((a, b) => a - b);
  const line = {
    ...{
      seed,
      coordinations: chosen,
      strikes: struck.length,
      faults: new Set(struck.map(({ strike }) => strike)).size,
    },
    violations: broken.length,
    recovery_ms_median: Math.round(recoveries[Math.floor(recoveries.length / 2)] ?? 0),
    recovery_ms_max: Math.round(recoveries.at(-1) ?? 0),
    not_recovered: struck.filter(({ tookMs }) => tookMs === undefined).length,
    ...sums,
    seconds: Math.round((performance.now() - began) / 1_000),
    ...(broken.length > 0 ? { broken } : {}),
  };
  process.stdout.write(`${JSON.stringify(line)}\n`);
  // A part of the processes may be past listening.
  process.exit(broken.length > 0 ? 1 : 0);
}

async function locks(): Promise<void> {
  const coordination = values.coordination === "all" ? "postgres" : one(values.coordination);
  const servers = await Servers.start(coordination);
  try {
    const [unfenced, fenced] = await Promise.all([contest(servers, false), contest(servers, true)]);
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

async function under(coordination: Coordination, seed: number, folder: string): Promise<void> {
  const strikes = strikesFor(coordination, new Dice(seed));
  const deadline = performance.now() + Number(values.minutes ?? "Infinity") * 60_000;
  say(`${coordination}: ${strikes.length} faults or pairs, seed ${seed}, session timeout ${sessionTimeoutMs} ms`);
  const servers = await Servers.start(coordination);
  try {
    for (let i = 0; i < strikes.length && performance.now() < deadline; i += strikesEach) {
      const some = strikes.slice(i, i + strikesEach);
      const episode = await play({
        ...{ servers, seed: seed + i, strikes: some, sessionTimeoutMs, settleMs, folder },
        onStrike: (strike, tookMs) => told(coordination, strike, tookMs),
      });
      for (const [name, count] of Object.entries(figuresOf(episode.history))) sums[name as keyof Figures] += count;
      if (episode.violation || values.keep) keep(coordination, seed + i, some, episode, folder);
    }
  } finally {
    await servers.close();
  }
}

function told(coordination: Coordination, strike: Strike, tookMs: number | undefined): void {
  struck.push({ coordination, strike: nameOf(strike), tookMs });
  const took =
    tookMs === undefined ? `NOT RECOVERED within ${recoveryMs} ms` : `recovered after ${Math.round(tookMs)} ms`;
  say(`  ${nameOf(strike).padEnd(50)} ${took}`);
}

function keep(coordination: Coordination, seed: number, strikes: Strike[], episode: Episode, folder: string): void {
  const { violation, history, schema } = episode;
  const lines = linesOf(history).map(({ atMs, what }) => `${(atMs / 1_000).toFixed(3)} ${what}\n`);
  writeFileSync(join(folder, `${schema}.trace`), lines.join(""));
  writeFileSync(join(folder, `${schema}.history.json`), JSON.stringify(history));
  if (!violation) return;
  broken.push({ ...violation, coordination, seed, strikes: strikes.map(nameOf) });
  say(tell(history, violation));
  say(`again: npm run faults -- ${strikes.map(nameOf).join(" ")} --coordination ${coordination} --seed ${seed}`);
}

function strikesFor(coordination: Coordination, dice: Dice): Strike[] {
  const known = faultsFor(coordination);
  const rounds = Number(values.rounds);
  if (positionals.length > 0) {
    const named = positionals.map((text) => text.split("+").map((name) => faultNamed(name)));
    // One that is about another service is left to that service's turn.
    const possible = named.filter((strike) => strike.every((fault) => known.includes(fault)));
    return Array.from({ length: rounds }, () => possible).flat();
  }
  const alone = Array.from({ length: rounds }, () => shuffled(known, dice).map((fault) => [fault])).flat();
  const pairs = Array.from({ length: Number(values.pairs ?? Math.ceil(alone.length / 2)) }, () => {
    const first = dice.one(known);
    return [first, dice.one(known.filter((other) => other !== first))];
  });
  return [...alone, ...pairs];
}

function faultNamed(name: string): Fault {
  const found = allFaults.find((fault) => fault.name === name);
  if (!found) throw new Error(`there is no fault ${name}; --list names them`);
  return found;
}

function shuffled<T>(of: readonly T[], dice: Dice): T[] {
  return of
    .map((one) => ({ one, at: dice.between(0, 1) }))
    .sort((a, b) => a.at - b.at)
    .map(({ one }) => one);
}
