/** The main module of a host: a thread or process that runs isolated handlers, one run at a time. Started by `places.ts`. */
import { isMainThread, parentPort, Worker } from "node:worker_threads";
import { messageOf } from "../../base/errors.ts";
import { jsonText } from "../../base/json.ts";
import { Continuation } from "../../run/flow.ts";
import type { Handler } from "../../run/handler.ts";
import { isRetryIn, Snooze } from "../../run/handling/postponed.ts";
import { HostedRun } from "./hosted-run.ts";
import { loadHandler, loadingFailed } from "./load-module.ts";
import type { Ended, FromHost, ToHost } from "./messages.ts";
import { withinTrace } from "./run-trace.ts";
import { sent } from "./thrown.ts";

const post: (message: FromHost) => void = parentPort
  ? (message) => parentPort?.postMessage(message)
  : (message) => void process.send?.(message);

const handlers = new Map<string, Promise<Handler>>();
let hosted: HostedRun | undefined;

function handlerOf(module: string): Promise<Handler> {
  const known = handlers.get(module);
  if (known) return known;
  const loading = loadHandler(module).catch((error) => {
    handlers.delete(module);
    throw loadingFailed(module, error);
  });
  handlers.set(module, loading);
  return loading;
}

async function load(modules: readonly string[]): Promise<void> {
  const faults: { module: string; thrown: ReturnType<typeof sent> }[] = [];
  for (const module of modules) await handlerOf(module).catch((error) => faults.push({ module, thrown: sent(error) }));
  post({ kind: "loaded", faults });
}

async function run({ turn, module, fields, payload, trace }: ToHost & { kind: "run" }): Promise<void> {
  const own = new HostedRun(turn, fields, post);
  hosted = own;
  let ended: Ended;
  try {
    const handler = handlers.get(module) ? await handlers.get(module) : await handlerOf(module);
    ended = endedWith(own, await withinTrace(trace, () => (handler as Handler)(own.run, payload)));
  } catch (error) {
    ended = error instanceof Snooze ? { snoozeMs: error.forMs } : { thrown: sent(error, own.reason) };
  }
  post({ kind: "ended", turn, ...ended });
}

function endedWith({ run, reason }: HostedRun, value: unknown): Ended {
  if (value instanceof Snooze) return { snoozeMs: value.forMs };
  if (isRetryIn(value)) return { thrown: sent(value, reason) };
  if (value instanceof Continuation) return { onward: value.onward };
  try {
    return { text: jsonText(value, `run ${run.id}: result`) };
  } catch (error) {
    // The run has succeeded, even if its result cannot be stored.
    run.log.warn(`the result was not kept: ${messageOf(error)}`);
    return { text: null };
  }
}

function take(message: ToHost): void {
  if (message.kind === "load") void load(message.modules);
  else if (message.kind === "run") void run(message);
  // Messages for an earlier run are ignored.
  else if (hosted?.turn !== message.turn) return;
  else if (message.kind === "abort") hosted.abort(message);
  else if (message.kind === "answer") hosted.answered(message);
  else void hosted.query(message);
}

/** Sends the error to the worker, then ends the host. */
function crash(thrown: unknown): void {
  const message: FromHost = { kind: "crashed", thrown: sent(thrown) };
  if (parentPort) {
    post(message);
    process.exit(1);
  }
  process.send?.(message, () => process.exit(1));
}

/**
 * Ignores the signals that a terminal or systemd sends to the whole process group, because the worker handles them and ends its hosts after
 * their runs. Ends this process when the worker has ended.
 */
function endWithWorker(): void {
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => undefined);
  process.on("disconnect", () => process.exit());
  // While a handler computes without a pause, this process does not notice that the worker has ended, so a thread checks that.
  new Worker(new URL("./parent-watch.js", import.meta.url), {
    workerData: Number(process.argv[2]),
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 1, stackSizeMb: 1 },
  }).unref();
}

process.on("uncaughtException", crash);
if (isMainThread) {
  process.on("message", take);
  endWithWorker();
} else parentPort?.on("message", take);
