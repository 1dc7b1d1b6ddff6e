import { messageOf } from "./errors.ts";
import type { Log } from "./log.ts";

const names = ["SIGTERM", "SIGINT"] as const;

interface Stopping {
  stop: () => Promise<void>;
  log: Log;
}

/** All of this process that a signal stops; who has begun to stop stays until that is done. */
const standing = new Set<Stopping>();
let underWay = false;
/** What ends with this process however it ends. */
const ends = new Set<() => void>();

/** What is done at once when a second signal ends the process: by a signal's usual effect there is no "exit". @returns takes it back */
export function atSecondSignal(end: () => void): () => void {
  ends.add(end);
  return () => ends.delete(end);
}

/**
 * Stops on SIGTERM and SIGINT, and where the process has nothing left to do. The signal has its usual effect once all in this process
 * that stop by it have; where the program listens to it as well, when and how the process ends is the program's.
 *
 * A script that has done its work therefore ends by itself, and closes in order what it left open; an embedded server whose last user it
 * was stops. Idle connections do not keep a process alive, so Node says "beforeExit" once no request, timer or lock is left; what `stop`
 * does then keeps the process alive until it is done. `process.exit()` ends it without this.
 */
export function stopOnSignals(stop: () => Promise<void>, stopping: AbortSignal, log: Log): void {
  const one = { stop, log };
  if (standing.size === 0 && !underWay) listen();
  standing.add(one);
  // Not within the abort: `stop` is what aborts. Whoever called it is told of a failure.
  const begun = () => queueMicrotask(() => void Promise.allSettled([stop()]).then(() => leave(one)));
  if (stopping.aborted) begun();
  else stopping.addEventListener("abort", begun, { once: true });
}

function leave(one: Stopping): void {
  standing.delete(one);
  if (standing.size === 0 && !underWay) unlisten();
}

/** First in line: a listener for once that came before this one would not be seen by it. */
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
  // Also who starts meanwhile.
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
