import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { wholeLines } from "../../../scheduler/test/support/whole-lines.ts";
import { Dice } from "../../../simulation/src/plan/dice.ts";
import { Line } from "../line.ts";
import { accountOf, type Figures, type Noted, type Slot, underWay } from "./account.ts";
import { refusedBy, type Store, storeFor } from "./store.ts";
import { lockMs, type Name, recurring, traits } from "./subject.ts";
import { adding, Worker } from "./worker.ts";

export interface Played {
  readonly store: string;
  /** Figures of the one-off runs, one due every 200 ms. */
  readonly once: Figures;
  /** Figures of the recurring task, with the shortest period that the subject supports. */
  readonly recurring: Figures;
  readonly period_ms: number;
  /** The number of faults that hit a worker while a handler ran. */
  readonly in_the_midst: number;
  /** The number of worker processes that ended by themselves after they had been ready, and were restarted. */
  readonly fell: number;
  /** The time from the last slot's due time to the end of the wait, in ms. */
  readonly waited_ms: number;
  /** The number of late results that the store refused; null if the subject does not count them. */
  readonly refused: number | null;
}

export interface Play {
  readonly who: Name;
  readonly seed: number;
  /** The time in seconds in which slots are due and all faults begin. */
  readonly seconds: number;
  readonly folder: string;
  readonly say: (text: string) => void;
}

export const workers = 3;
export const everyMs = 200;
/** The time in ms until the first slot; by then all processes must have started and all slots must be added. */
const leadMs = 10_000;
/** The wait in ms after the last slot, so that runs whose lock is still held are counted: its minimum and maximum. */
const shortestWaitMs = 15_000;
export const longestWaitMs = 30_000;
const lookMs = 10;
/** A handler counts as running only if it needs at least this many ms more, because a fault takes a moment to hit it. */
const leftMs = 100;

/** Runs one subject alone through all faults, and counts the outcomes. */
export async function play({ who, seed, seconds, folder, say }: Play): Promise<Played> {
  const { periodMs } = traits[who];
  const store = await storeFor(traits[who]);
  const log = join(folder, `${who}.notes`);
  const crew: Worker[] = [];
  try {
    const [fromMs, spanMs] = [Date.now() + leadMs, seconds * 1_000];
    const once = Array.from({ length: spanMs / everyMs }, (_, i) => ({
      key: `once ${i}`,
      dueMs: fromMs + i * everyMs,
    }));
    const order = { who, store: store.url, seed, log };
    await adding({ ...order, name: "adder", life: 1, adds: once });
    for (let i = 1; i <= workers; i++) {
      const line = await Line.to(new URL(store.url).host);
      crew.push(new Worker({ ...order, store: line.url(store.url), name: `w${i}` }, line));
    }
    for (const worker of crew) worker.begin();
    await Promise.all(crew.map((worker) => worker.ready()));
    if (Date.now() > fromMs)
      throw new Error(`${who} was not there when its first slot came due: the machine is too busy`);
    const slots: Slot[] = [];
    for (let at = Math.ceil(fromMs / periodMs) * periodMs; at < fromMs + spanMs; at += periodMs)
      slots.push({ key: recurring(at), dueMs: at });

    const read = () => readNotes(log);
    const midst = await strike({ crew, store, read, fromMs, spanMs, dice: new Dice(seed), say });
    const untilMs = fromMs + spanMs;
    const settled = () => {
      const of = [...once, ...slots];
      const { never, unfinished } = account(of);
      return never + unfinished === 0 && Date.now() > untilMs + shortestWaitMs;
    };
    const account = (of: readonly Slot[]) =>
      accountOf(
        of,
        read(),
        crew.flatMap((one) => one.deaths),
        crew.flatMap((one) => one.standStills),
      );
    while (!settled() && Date.now() < untilMs + longestWaitMs) await pause(500);
    return {
      store: store.title,
      once: account(once),
      recurring: account(slots),
      period_ms: periodMs,
      in_the_midst: midst,
      fell: crew.reduce((sum, { fell }) => sum + fell, 0),
      waited_ms: Date.now() - untilMs,
      refused: who === "carillon" ? await refusedBy(store) : null,
    };
  } finally {
    await Promise.all(crew.map((worker) => worker.close()));
    await store.close();
  }
}

interface Struck {
  crew: readonly Worker[];
  store: Store;
  read: () => Noted[];
  fromMs: number;
  spanMs: number;
  dice: Dice;
  say: (text: string) => void;
}

/**
 * Inflicts the faults, which are the same for every subject; the seed delays each by up to a second.
 * @returns the number of faults that hit a running handler
 */
async function strike({ crew, store, read, fromMs, spanMs, dice, say }: Struck): Promise<number> {
  let met = 0;
  /** Waits up to 3 s for a worker with a running handler, according to the log; then returns any worker. */
  const busy = async (): Promise<Worker> => {
    for (const deadline = performance.now() + 3_000; performance.now() < deadline; await pause(lookMs)) {
      const notes = read();
      const able = crew.filter(({ now }) => underWay(notes, now, Date.now()).some((one) => one.leftMs > leftMs));
      if (able.length === 0) continue;
      met++;
      return dice.one(able);
    }
    return dice.one(crew);
  };
  const cut = async (those: readonly Worker[], forMs: number) => {
    const mend = those.map(({ line }) => line.trouble({ kind: "cut" }));
    await pause(forMs);
    for (const mended of mend) mended();
  };
  const kill = async () => {
    const victim = await busy();
    await victim.kill();
    await pause(1_000);
    victim.begin();
  };
  /** A time in ms that is longer than a worker's lock lasts plus the interval of the check for expired locks. */
  const longMs = 3 * lockMs;
  const faults: readonly (readonly [part: number, what: string, act: () => Promise<void>])[] = [
    [0.05, "a worker is killed", kill],
    [0.11, "a worker is killed", kill],
    [0.17, "a worker is killed", kill],
    [0.23, `a worker is stopped for ${longMs} ms`, async () => (await busy()).standStill(longMs)],
    [0.52, "all connections are cut for 2 s", async () => (await busy()) && (await cut(crew, 2_000))],
    [0.6, "a worker's connections are cut for 8 s", async () => cut([await busy()], 8_000)],
    [
      0.78,
      "the store is killed, for 2 s",
      async () => {
        await busy();
        await store.crash();
        await pause(2_000);
        await store.up();
      },
    ],
    [0.88, "a worker is killed", kill],
  ];
  for (const [part, what, act] of faults) {
    await pause(Math.max(0, fromMs + part * spanMs + dice.whole(0, 1_000) - Date.now()));
    say(`  ${((Date.now() - fromMs) / 1_000).toFixed(1)} s: ${what}`);
    await act();
  }
  await pause(Math.max(0, fromMs + spanMs - Date.now()));
  return met;
}

function readNotes(log: string): Noted[] {
  if (!existsSync(log)) return []; // No handler has started yet.
  return wholeLines(log).map((line) => JSON.parse(line) as Noted);
}
