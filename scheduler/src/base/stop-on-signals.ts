import { messageOf } from "./errors.ts";
import type { Log } from "./log.ts";

const names = ["SIGTERM", "SIGINT"] as const;

interface Stopping {
  stop: () => Promise<void>;
  log: Log;
}

/** Everything in this process that stops on a signal; an entry is removed once its stop is complete. */
const standing = new Set<Stopping>();
let underWay = false;
/** Actions that run when a second signal ends this process. */
const ends = new Set<() => void>();

/**
 * Registers an action for the moment when a second signal ends the process, because a signal's default effect emits no "exit" event.
 * @returns a function that removes the action
 */
export function atSecondSignal(end: () => void): () => void {
  ends.add(end);
  return () => ends.delete(end);
}

/**
 * Stops on SIGTERM and SIGINT, and when the process has nothing left to do. The signal has its default effect once everything in this
 * process that uses this function has stopped. If the program itself listens to the signal, the program decides when and how the process
 * ends. A script that has done its work thus ends by itself and closes everything properly; an embedded server that loses its last user
 * this way stops. Idle connections do not keep a process alive: Node emits "beforeExit" once no request, timer or lock is left. The work of
 * `stop` then keeps the process alive until it is complete. `process.exit()` ends the process without this.
 */
export function stopOnSignals(stop: () => Promise<void>, stopping: AbortSignal, log: Log): void {
  const one = { stop, log };
  if (standing.size === 0 && !underWay) listen();
  standing.add(one);
  // Deferred, because `stop` itself aborts the signal. The caller of `stop` receives its error.
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
  // The loop includes entries that are added meanwhile.
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
