/** A process under test: a node, a worker on the store, or a worker that reaches its cluster by HTTP. It logs its actions to a file. */
import { openSync, writeSync } from "node:fs";
import { pause, systemClock } from "../../scheduler/src/base/clock.ts";
import { CarillonError } from "../../scheduler/src/base/errors.ts";
import type { Log } from "../../scheduler/src/base/log.ts";
import { mix } from "../../scheduler/src/base/random.ts";
import { Carillon } from "../../scheduler/src/library/carillon.ts";
import { worker } from "../../scheduler/src/library/remote-worker.ts";
import type { Handler, Run, RunNotice } from "../../scheduler/src/run/handler.ts";
import { realSurroundings } from "../../scheduler/src/settings/surroundings.ts";
import type { Execution } from "../../simulation/src/history.ts";
import { Dice } from "../../simulation/src/plan/dice.ts";
import { type Act, type Asked, monotonicMs, type Noted, type Order, type Told } from "./order.ts";
import { stepClock } from "./stepped-clock.ts";

const order = JSON.parse(process.argv[2] ?? "{}") as Order;
const { name, life, seed, schema, store, coordination, concurrency, tasks, key } = order;
const file = openSync(order.log, "a");
/** Appends a line in one write(2), so that it survives a kill -9 of the process. */
const note = (noted: Noted) => void writeSync(file, `${JSON.stringify(noted)}\n`);
const tell = (told: Told, then: () => void = () => undefined) => process.send?.(told, then);

const say = (level: "info" | "warn" | "error") => (fields: object, message: string) =>
  note({ kind: "log", at: monotonicMs(), node: name, level, text: `${message} ${JSON.stringify(fields)}` });
const log: Log = { debug: () => undefined, info: say("info"), warn: say("warn"), error: say("error") };

/** The start time of each attempt. It is recorded in the same turn of the event loop in which the worker checks the claim. */
const begun = new Map<string, { at: number; believedMs: number }>();
const listen = ({ kind, runId, attempt, startedMs }: RunNotice) => {
  if (kind === "started") begun.set(`${runId} ${attempt}`, { at: monotonicMs(), believedMs: startedMs });
};

/** The handler of all tasks. The seed determines how long it takes and how it ends; it logs its start and its end. */
const handler: Handler = async (run: Run) => {
  const { at, believedMs } = begun.get(`${run.id} ${run.attempt}`) ?? { at: monotonicMs(), believedMs: Number.NaN };
  begun.delete(`${run.id} ${run.attempt}`);
  const dice = new Dice(mix(mix(seed, run.id), run.attempt));
  const length = dice.whole(0, 19);
  const forMs = length < 11 ? dice.between(2, 200) : length < 18 ? dice.between(200, 2_000) : dice.between(2e3, 8e3);
  const [deaf, fails] = [dice.chance(0.15), dice.chance(0.1)];
  const { id, task, attempt, fence } = run;
  const times = { slotMs: run.slot?.getTime() ?? null, dueMs: run.due.getTime(), believedMs };
  note({
    kind: "start",
    at,
    node: name,
    life,
    run: id,
    task,
    attempt,
    fence,
    ...times,
    deaf,
    toldAgo: order.role === "remote worker",
  });
  await pause(systemClock, forMs, deaf ? undefined : run.signal);
  const how: Execution["how"] = !deaf && run.signal.aborted ? "stopped" : fails ? "threw" : "returned";
  const why = how === "stopped" ? String((run.signal.reason as { code?: string }).code) : null;
  note({ kind: "end", at: monotonicMs(), fence, how, why });
  if (how === "stopped") throw run.signal.reason;
  if (fails) throw new Error("as the seed has it");
  return "done";
};

/** Creates the node or worker. It does not store definitions at its start, because operations define the tasks at run time. */
const library = () =>
  new Carillon(
    {
      store,
      schema,
      name,
      coordination,
      concurrency,
      groups: ["default"],
      log,
      handleSignals: false,
      scheduler: order.role === "node",
      worker: order.role === "worker",
      listen: order.listen,
      sessionTimeout: order.sessionTimeoutMs,
      drain: "3s",
    },
    {
      ...realSurroundings,
      around: async (opened) => ({ ...opened, tasks: { ...opened.tasks, saveAll: async () => [] } }),
    },
  );
const remote = () => {
  const timeouts = { sessionTimeout: order.sessionTimeoutMs, drain: "3s" as const };
  return worker({ server: [...order.servers], key, name, concurrency, ...timeouts, handleSignals: false, log });
};

const carillon = order.role === "remote worker" ? undefined : library();
const subject = carillon ?? remote();
subject.onRun(listen);
if (order.role === "worker") for (const task of tasks) (subject as Carillon).task(task, {}, handler);
if (order.role === "remote worker")
  for (const task of tasks) (subject as ReturnType<typeof remote>).task(task, handler);

/** Executes an operation. `reason` is the operation's id, so that the store's audit contains the id. */
async function perform(reason: string, act: Act): Promise<{ answer: string; run?: number; created?: boolean }> {
  if (!carillon) throw new Error("a remote worker manages nothing");
  switch (act.kind) {
    case "save":
      return { answer: String((await carillon.save(act.definition, { reason })).changed) };
    case "pause task":
      return { answer: String((await carillon.pause(act.task, { reason })).started) };
    case "resume task":
      return { answer: String(await carillon.resume(act.task, { reason })) };
    case "remove task":
      return { answer: String(await carillon.remove(act.task, { reason })) };
    case "cancel":
      return { answer: await carillon.cancel(act.run), run: act.run };
    case "enqueue": {
      const { nowMs, store: opened } = await carillon.open();
      const { taskId } = await opened.tasks.byName(act.task);
      const { dueMs, key: enqueueKey } = act;
      const write = { taskId, payload: null, dueMs, key: enqueueKey, priority: null, source: "enqueue" as const };
      const [enqueued] = await opened.runs.enqueue([write], nowMs());
      return { answer: `run ${enqueued?.runId}`, run: enqueued?.runId, created: enqueued?.created };
    }
  }
}

process.on("message", (asked: Asked) => {
  if (asked.kind === "step clock") stepClock(asked.ms);
  else if (asked.kind === "block") {
    for (const end = monotonicMs() + asked.ms; monotonicMs() < end; );
  } else if (asked.kind === "stop") subject.stop().then(() => tell({ kind: "stopped" }, () => process.exit(0)), broken);
  else {
    const { id } = asked;
    perform(id, asked.act).then(
      (done) => tell({ kind: "done", id, outcome: "ok", ...done }),
      (error) => {
        if (!(error instanceof CarillonError)) return broken(error);
        const refused = !error.code.startsWith("STORE_") && error.code !== "STOPPED";
        tell({ kind: "done", id, outcome: refused ? "refused" : "unknown", answer: String(error) });
      },
    );
  }
});
// This process gets all its operations from its parent, so it exits when the parent has disconnected.
process.on("disconnect", () => process.exit(0));

function broken(error: unknown): void {
  note({ kind: "log", at: monotonicMs(), node: name, level: "error", text: `unexpected: ${(error as Error).stack}` });
  process.exit(1);
}
process.on("uncaughtException", broken);
process.on("unhandledRejection", broken);

const lookMs = 50;
const stallMs = 400;
let looked = monotonicMs();
setInterval(() => {
  const at = monotonicMs();
  if (at - looked > stallMs) note({ kind: "stalled", at, node: name, ms: Math.round(at - looked) });
  looked = at;
}, lookMs).unref();

/** If the start fails with an error of the store, such as a full disk, start again, as a supervisor would. */
for (let started = false; !started; ) {
  try {
    await subject.start();
    started = true;
  } catch (error) {
    if (!(error instanceof CarillonError) || !error.code.startsWith("STORE_")) throw error;
    log.warn({ code: error.code }, "could not start; trying again");
    await pause(systemClock, 500);
  }
}
tell({ kind: "started" });
