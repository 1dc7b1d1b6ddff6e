import { type Clock, pause } from "../clock.ts";
import { atSecondSignal } from "../stop-on-signals.ts";

const pollMs = 20;

/** Of groups whose leader runs. One listener for all: Node takes more than ten for a leak. */
const ends = new Set<() => void>();
const endAll = () => {
  for (const end of ends) end();
};
let forget = (): void => undefined;

/**
 * A group is told to end when this process ends in a hurry, unless it is killed: a session of its own hears of no terminal.
 * @returns ends this
 */
export function endsWithProcess(pid: number, reaped: () => boolean): () => void {
  const end = () => void signalGroup(pid, "SIGTERM", reaped());
  ends.add(end);
  if (ends.size === 1) {
    process.on("exit", endAll);
    forget = atSecondSignal(endAll);
  }
  return () => {
    ends.delete(end);
    if (ends.size > 0) return;
    process.off("exit", endAll);
    forget();
  };
}

/**
 * Ends a process group: SIGTERM, then SIGKILL for what is left after the grace. Resolves when the group is empty or has
 * been killed, without waiting for the dead to be reaped.
 */
export async function endGroup(pid: number, graceMs: number, clock: Clock, reaped: () => boolean): Promise<void> {
  if (!signalGroup(pid, "SIGTERM", reaped())) return;
  const until = clock.monotonic() + graceMs;
  for (let left = graceMs; left > 0; left = until - clock.monotonic()) {
    await pause(clock, Math.min(pollMs, left));
    if (!signalGroup(pid, 0, reaped())) return;
  }
  signalGroup(pid, "SIGKILL", reaped());
}

/**
 * @param reaped the group's leader has ended and its number may be given away. While any of its group lives the kernel
 * does not reuse the number, so a live process with that number is a stranger, and so is its group.
 * @returns whether the group still had members
 */
function signalGroup(pid: number, signal: NodeJS.Signals | 0, reaped: boolean): boolean {
  if (reaped && send(pid, 0)) return false;
  return send(-pid, signal);
}

function send(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(pid, signal);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ESRCH") return false;
    // It is there, under an account that we may not signal.
    if (code === "EPERM") return true;
    throw error;
  }
}
