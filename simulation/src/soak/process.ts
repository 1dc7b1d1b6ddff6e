/**
 * One process of the soak test: a node, or a worker that reaches the nodes by HTTP. Its handlers record their start and end, and sleep
 * in between.
 */
import { openSync, writeSync } from "node:fs";
import { Carillon } from "../../../scheduler/src/library/carillon.ts";
import { worker } from "../../../scheduler/src/library/remote-worker.ts";
import type { Handler, Run } from "../../../scheduler/src/run/handler.ts";
import { realSurroundings } from "../../../scheduler/src/settings/surroundings.ts";
import { load, remoteGroup, worksFor } from "./load.ts";
import { StartWriter } from "./many-notes.ts";
import { nameOf } from "./many-slots.ts";
import type { Asked, NodeOrder, Noted, Order, Told, WorkerOrder } from "./order.ts";

const order = JSON.parse(process.argv[2] ?? "{}") as Order;
const file = openSync(order.log, "a");
const note = (noted: Noted) => void writeSync(file, `${JSON.stringify(noted)}\n`);
const tell = (told: Told) => void process.send?.(told);
const sessionTimeout = order.sessionTimeoutMs;

const log = {
  debug: () => undefined,
  info: () => undefined,
  warn: (fields: object, text: string) => say("warn", fields, text),
  error: (fields: object, text: string) => say("error", fields, text),
};

function say(level: string, fields: object, text: string): void {
  process.stderr.write(`${new Date().toISOString()} ${order.name} ${level} ${text} ${JSON.stringify(fields)}\n`);
}

const handler: Handler = async (run) => {
  const { id, task, attempt, fence, slot, due } = run;
  note({
    n: "start",
    node: order.name,
    pid: process.pid,
    run: id,
    task,
    attempt,
    fence,
    slot: slot?.getTime() ?? null,
    due: due.getTime(),
    at: Date.now(),
  });
  const how = await work(run);
  const { code = null } = (run.signal.reason ?? {}) as { code?: string };
  note({ n: "end", fence, at: Date.now(), how, why: how === "stopped" ? code : null });
  if (how === "stopped") throw run.signal.reason;
};

function work({ id, task, signal }: Run): Promise<"returned" | "stopped"> {
  return new Promise((resolve) => {
    const stop = () => {
      clearTimeout(timer);
      resolve("stopped");
    };
    const timer = setTimeout(
      () => {
        signal.removeEventListener("abort", stop);
        resolve("returned");
      },
      worksFor(task, id),
    );
    signal.addEventListener("abort", stop, { once: true });
  });
}

function nodeOf({ store, coordination, schema, name, listen, many }: NodeOrder) {
  const tower = new Carillon(
    {
      store,
      schema,
      name,
      listen,
      sessionTimeout,
      groups: ["default"],
      handleSignals: false,
      log,
      ...(coordination === undefined ? {} : { coordination }),
    },
    // `saveAll` does nothing, because the parent process saves the tasks; this process only registers their handlers.
    {
      ...realSurroundings,
      around: async (opened) => ({ ...opened, tasks: { ...opened.tasks, saveAll: async () => [] } }),
    },
  );
  if (many) {
    const notes = new StartWriter(many.folder, name);
    for (let task = 0; task < many.grid.tasks; task++)
      tower.task(nameOf(task), {}, ({ slot }) => notes.note(task, slot?.getTime() ?? Number.NaN, Date.now()));
    return tower;
  }
  for (const { definition } of load) if (definition.group !== remoteGroup) tower.task(definition.name, {}, handler);
  return tower;
}

function workerOf({ servers, key, name }: WorkerOrder) {
  const far = worker({ server: servers, key, name, sessionTimeout, handleSignals: false, log });
  for (const { definition } of load) if (definition.group === remoteGroup) far.task(definition.name, handler);
  return far;
}

const own = order.kind === "node" ? nodeOf(order) : workerOf(order);
process.on("message", (asked: Asked) => {
  if (asked === "held") {
    // The second collection frees objects whose finalizers ran after the first one.
    globalThis.gc?.();
    globalThis.gc?.();
    const { rss, heapUsed, external } = process.memoryUsage();
    const handles = process.getActiveResourcesInfo().length;
    tell({ kind: "held", held: { rssBytes: rss, heapBytes: heapUsed, externalBytes: external, handles } });
    return;
  }
  own.stop().then(
    () => process.exit(0),
    (error) => {
      say("error", { error: String(error) }, "could not stop");
      process.exit(1);
    },
  );
});
// The process exits when its parent does.
process.on("disconnect", () => process.exit(1));
await own.start();
tell({ kind: "started" });
