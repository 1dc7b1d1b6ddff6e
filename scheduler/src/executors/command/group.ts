import { readdirSync, readFileSync } from "node:fs";
import { type Clock, pause } from "../../base/clock.ts";
import { atSecondSignal } from "../../base/stop-on-signals.ts";

const pollMs = 20;

/** Callbacks for groups whose leader runs. They share one listener: Node warns of a leak above ten. */
const ends = new Set<() => void>();
const endAll = () => {
  for (const end of ends) end();
};
let forget = (): void => undefined;

/**
 * Sends SIGTERM to a group when this process exits, unless this process is killed: a session of its own gets no signal from a terminal. A
 * group that got SIGTERM before gets SIGKILL, because after this process's exit nothing would send it after the grace.
 * @returns removes this
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

/** The variable that marks the processes of one command, also those that left its process group. */
export const markName = "CARILLON_COMMAND";

/** A started command. */
export interface Group {
  /** The process number of the group's leader. */
  pid: number;
  /** The value of `markName` in its environment. */
  mark: string;
  /** The leader has ended, and its pid may be reused. */
  reaped: () => boolean;
}

/**
 * Ends a command's process group and the processes that left it by `setsid`: sends SIGTERM, and after the grace SIGKILL to those that are
 * left. Resolves when none is left or all have been killed, without waiting for the dead to be reaped.
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
  // Searched again: a stray may have started others, and a pid may have been reused.
  for (const stray of strays(mark, pid)) send(stray, "SIGKILL");
}

/**
 * Processes outside the group that have the mark in their environment. Linux only; it misses processes whose environment this account may
 * not read, and those that cleared theirs.
 */
function strays(mark: string, group: number): number[] {
  return processNumbers().filter((pid) => {
    try {
      if (!readFileSync(`/proc/${pid}/environ`, "latin1").split("\0").includes(`${markName}=${mark}`)) return false;
      // The fields after the name, which may have spaces: state, parent, group.
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
 * @param reaped the group's leader has ended and its pid may be reused. While any of its group lives the kernel does not reuse the pid,
 * so a live process with that pid is a stranger, and so is its group.
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
    // The process exists, under an account that this one may not signal.
    if (code === "EPERM") return true;
    throw error;
  }
}
