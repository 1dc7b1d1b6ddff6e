/** A process under test: runs one contender and records the start of each handler. */
import { setTimeout as pause } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { type AddOrder, type Answer, type Ask, type Calls, dueOf } from "./calls.ts";
import { monotonicMs } from "./clock.ts";
import { type Contender, moduleOf, type Order } from "./contender.ts";

const order = JSON.parse(process.argv[2] ?? "{}") as Order;
let contender: Contender | undefined;
const notes: number[] = [];
const handle = (id: number) => void notes.push(id, monotonicMs());

const opened = (): Contender => {
  if (!contender) throw new Error("asked before it was opened");
  return contender;
};

type Answers = { [Call in keyof Calls]: (order: never) => Promise<ReturnType<Calls[Call]>> };

const answers: Answers = {
  async open() {
    contender = await (await moduleOf(order.who)).open(order);
  },
  async add({ from, count, batch, callers = 1, due }: AddOrder) {
    const began = performance.now();
    let next = 0;
    const call = async () => {
      while (next < count) {
        const at = next;
        next += batch;
        const runs = Array.from({ length: Math.min(batch, count - at) }, (_, i) => ({
          id: from + at + i,
          ...(due ? { dueMs: dueOf(due, at + i) } : {}),
        }));
        await opened().add(runs);
      }
    };
    await Promise.all(Array.from({ length: callers }, call));
    return performance.now() - began;
  },
  async addOneByOne({ from, count, pauseMs, safe = false }: Parameters<Calls["addOneByOne"]>[0]) {
    const added = new Float64Array(count);
    for (let i = 0; i < count; i++) {
      added[i] = monotonicMs();
      await opened().add([{ id: from + i }]);
      if (safe) added[i] = monotonicMs();
      await pause(pauseMs * (0.5 + Math.random()));
    }
    return added;
  },
  async awaitOneByOne({ from, count, pauseMs }: Parameters<Calls["awaitOneByOne"]>[0]) {
    const { addAndWait } = opened();
    if (!addAndWait) throw new Error(`${order.who} tells nobody what a handler returned`);
    const told = new Float64Array(count);
    for (let i = 0; i < count; i++) {
      await addAndWait(from + i);
      told[i] = monotonicMs();
      await pause(pauseMs * (0.5 + Math.random()));
    }
    return told;
  },
  async work() {
    await opened().work(handle);
  },
  async workWithoutEnd() {
    await opened().work((id) => {
      handle(id);
      return new Promise<void>(() => undefined);
    });
  },
  async everyMinute({ tasks }: { tasks: number }) {
    const begin = opened().everyMinute;
    if (!begin) throw new Error(`${order.who} has nothing that comes again`);
    await begin(tasks, handle);
  },
  async everyPeriod({ tasks, periodMs }: { tasks: number; periodMs: number }) {
    const begin = opened().everyPeriod;
    if (!begin) throw new Error(`${order.who} has no such tasks here`);
    await begin(tasks, periodMs, handle);
  },
  async workStored() {
    const begin = opened().workStored;
    if (!begin) throw new Error(`${order.who} has no such tasks here`);
    await begin(handle);
  },
  handled: async () => notes.length / 2,
  notes: async () => Float64Array.from(notes),
  async usage() {
    const { userCPUTime, systemCPUTime } = process.resourceUsage();
    return { cpuUs: userCPUTime + systemCPUTime, rssBytes: process.memoryUsage.rss() };
  },
  async liveBytes() {
    setFlagsFromString("--expose-gc");
    runInNewContext("gc()");
    return process.memoryUsage().heapUsed;
  },
  async stop() {
    await contender?.stop();
  },
};

// The parent process measures; when it has gone, this process exits too.
const abandoned = () => process.exit(1);
process.on("disconnect", abandoned);
process.on("message", async ({ seq, call, order: given }: Ask) => {
  let answer: Answer;
  try {
    answer = { seq, value: await answers[call](given as never) };
  } catch (error) {
    answer = { seq, failed: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
  process.send?.(answer, () => {
    if (call === "stop") process.exit("failed" in answer ? 1 : 0);
  });
});
