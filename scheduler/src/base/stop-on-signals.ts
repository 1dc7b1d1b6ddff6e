import { messageOf } from "./errors.ts";
import type { Log } from "./log.ts";

const names = ["SIGTERM", "SIGINT"] as const;

interface Stopping {
  stop: () => Promise<void>;
  log: Log;
}

/** Everything in this process that stops on a signal; an entry stays until its stop is done. */
const standing = new Set<Stopping>();
let underWay = false;
/** Actions that run when a second signal ends this process. */
const ends = new Set<() => void>();

/**
 * Registers an action to run at once when a second signal ends the process: a signal's default effect emits no "exit". @returns removes
 * it
 */
export function atSecondSignal(end: () => void): () => void {
  ends.add(end);
  return () => ends.delete(end);
}

/**
 * Stops on SIGTERM and SIGINT, and when the process has nothing left to do. The signal has its default effect once everything in this
 * process that stops by it has stopped. If the program listens to the signal as well, the program decides when and how the process ends.
 *
 * So a script that has done its work ends by itself, and closes in order what it left open; an embedded server whose last user it was
 * stops. Idle connections do not keep a process alive: Node emits "beforeExit" once no request, timer or lock is left. The work of `stop`
 * then keeps the process alive until it is done. `process.exit()` ends the process without this.
 */
export function stopOnSignals(stop: () => Promise<void>, stopping: AbortSignal, log: Log): void {
  const one = { stop, log };
  if (standing.size === 0 && !underWay) listen();
  standing.add(one);
  // Not within the abort: `stop` itself aborts. Its caller gets a failure of the stop.
  const begun = () => queueMicrotask(() => void Promise.allSettled([stop()]).then(() => leave(one)));
  if (stopping.aborted) begun();
  else stopping.addEventListener("abort", begun, { once: true });
}

function leave(one: Stopping): void {
  standing.delete(one);
  if (standing.size === 0 && !underWay) unlisten();
}

/** Prepended, because this listener could not count a `once` listener that ran before it. */
function listen(): void {
  for (const name of names) process.prependListener(name, onSignal);
  process.on("beforeExit", onIdle);
}

function unlisten(): void {
  for (const name of names) process.removeListener(name, onSignal);
  process.removeListener("beforeExit", onIdle);
}

function onIdle(): void {
  for (const one of standing) void stopped(one);
}

const stopped = ({ stop, log }: Stopping): Promise<void> =>
  stop().catch((error) => log.error({ error: messageOf(error) }, "could not stop cleanly"));

function onSignal(name: NodeJS.Signals): void {
  const alone = process.listenerCount(name) === 1;
  if (!underWay) {
    underWay = true;
    void stopAll(name).then(() => end(name, alone));
  } else if (alone) end(name, alone);
}

async function stopAll(name: NodeJS.Signals): Promise<void> {
  // Includes those that are added meanwhile.
  while (standing.size > 0) {
    await Promise.all(
      [...standing].map(async (one) => {
        one.log.info({ signal: name }, "stopping: waiting for what runs");
        await stopped(one);
        standing.delete(one);
      }),
    );
  }
}

function end(name: NodeJS.Signals, alone: boolean): void {
  underWay = false;
  unlisten();
  if (!alone) return;
  for (const end of ends) end();
  process.kill(process.pid, name);
}
