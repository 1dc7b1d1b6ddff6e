import { readdirSync, readFileSync } from "node:fs";
import { type Clock, pause } from "../../base/clock.ts";
import { atSecondSignal } from "../../base/stop-on-signals.ts";

const pollMs = 20;

/** Of groups whose leader runs. One listener for all: Node takes more than ten for a leak. */
const ends = new Set<() => void>();
const endAll = () => {
  for (const end of ends) end();
};
let forget = (): void => undefined;

/**
 * A group is told to end when this process ends, unless this process is killed: a session of its own hears of no terminal. One that was
 * told to end already is killed, for nothing is there any more to do so after the grace.
 * @returns ends this
 */
export function endsWithProcess(pid: number, reaped: () => boolean, told: () => boolean): () => void {
  const end = () => void signalGroup(pid, told() ? "SIGKILL" : "SIGTERM", reaped());
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

/** The variable by which the processes of one command are known, also those that left its process group. */
export const markName = "CARILLON_COMMAND";

/** A started command. */
export interface Group {
  /** The process number of the group's leader. */
  pid: number;
  /** The value of `markName` in its environment. */
  mark: string;
  /** The leader has ended, and its number may be given away. */
  reaped: () => boolean;
}

/**
 * Ends a command: SIGTERM, then SIGKILL for what is left after the grace, for its process group and for processes that left it by
 * `setsid`. Resolves when none is left or all have been killed, without waiting for the dead to be reaped.
 */
export async function endGroup({ pid, mark, reaped }: Group, graceMs: number, clock: Clock): Promise<void> {
  const outside = strays(mark, pid);
  const isLeft = (signal: NodeJS.Signals | 0) =>
    [signalGroup(pid, signal, reaped()), ...outside.map((stray) => send(stray, signal))].includes(true);
  if (!isLeft("SIGTERM")) return;
  const until = clock.monotonic() + graceMs;
  for (let left = graceMs; left > 0; left = until - clock.monotonic()) {
    await pause(clock, Math.min(pollMs, left));
    if (!isLeft(0)) return;
  }
  signalGroup(pid, "SIGKILL", reaped());
  // Looked for anew: a stray may have started others, and a number may have been given away.
  for (const stray of strays(mark, pid)) send(stray, "SIGKILL");
}

/**
 * Processes outside the group that have the mark in their environment. Linux only; those whose environment this account may not
 * read, and those that cleared it, are not found.
 */
function strays(mark: string, group: number): number[] {
  return processNumbers().filter((pid) => {
    try {
      if (!readFileSync(`/proc/${pid}/environ`, "latin1").split("\0").includes(`${markName}=${mark}`)) return false;
      // After the name, which may have spaces: state, parent, group.
      const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
      return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[2]) !== group;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === "ENOENT" || code === "ESRCH" || code === "EACCES" || code === "EPERM") return false;
      throw error;
    }
  });
}

function processNumbers(): number[] {
  if (process.platform !== "linux") return [];
  return readdirSync("/proc").flatMap((name) => (/^\d+$/.test(name) ? [Number(name)] : []));
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
