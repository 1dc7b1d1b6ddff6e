import { messageOf } from "./errors.ts";
import type { Log } from "./log.ts";

const names = ["SIGTERM", "SIGINT"] as const;

interface Stopping {
  stop: () => Promise<void>;
  log: Log;
}

/** The stop functions in this process that a signal calls; an entry is removed once its stop is complete. */
const standing = new Set<Stopping>();
let underWay = false;
/** Functions that are called just before a signal ends this process. */
const ends = new Set<() => void>();

/**
 * Registers a function that is called just before a signal ends the process, either at a second signal or once everything has
 * stopped after the first. The registration is needed because a signal's default effect emits no "exit" event.
 * @returns a function that removes the registration
 */
export function atSecondSignal(end: () => void): () => void {
  ends.add(end);
  return () => ends.delete(end);
}

/**
 * Calls `stop` on SIGTERM and SIGINT, and when the process has nothing left to do. Once everything registered here has stopped,
 * the signal has its default effect; if the program itself listens to the signal, the program decides when the process ends. Thus
 * a script that has done its work closes everything and ends by itself. Idle connections do not keep a process alive: Node emits
 * "beforeExit" when no request, timer or lock is left, and `stop` then keeps the process alive until it is complete.
 * `process.exit()` ends the process without any of this.
 */
export function stopOnSignals(stop: () => Promise<void>, stopping: AbortSignal, log: Log): void {
  const one = { stop, log };
  if (standing.size === 0 && !underWay) listen();
  standing.add(one);
  // Deferred, because `stop` itself aborts the signal and must return first. Its error reaches the caller that called `stop`.
  const begun = () => queueMicrotask(() => void Promise.allSettled([stop()]).then(() => leave(one)));
  if (stopping.aborted) begun();
  else stopping.addEventListener("abort", begun, { once: true });
}

function leave(one: Stopping): void {
  standing.delete(one);
  if (standing.size === 0 && !underWay) unlisten();
}

/**
 * Prepends its listener: it must run before the program's `once` listeners, which are removed when they run, to see whether the
 * program listens too.
 */
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
  // The loop also stops entries that are added in the meantime.
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
