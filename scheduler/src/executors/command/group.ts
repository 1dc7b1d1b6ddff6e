import { readdirSync, readFileSync } from "node:fs";
import { type Clock, pause } from "../../base/clock.ts";
import { atSecondSignal } from "../../base/stop-on-signals.ts";

const pollMs = 20;

/** One callback per group whose leader runs. They share one listener, because Node reports more than ten as a leak. */
const ends = new Set<() => void>();
const endAll = () => {
  for (const end of ends) end();
};
let forget = (): void => undefined;

/**
 * Sends SIGTERM to a group when this process exits, unless this process is killed. This is needed because a session of its own gets no
 * signal from a terminal. A group that already got SIGTERM gets SIGKILL, because after this process's exit nothing would send it after the
 * grace.
 * @returns a function that removes this callback
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

/** The variable that marks the processes of one command, including those that left its process group. */
export const markName = "CARILLON_COMMAND";

/** A process group in which a command was started. */
export interface Group {
  /** The pid of the group's leader. */
  pid: number;
  /** The value of `markName` in the environment of the command. */
  mark: string;
  /** True if the leader has ended, so that its pid may be reused. */
  reaped: () => boolean;
}

/**
 * Ends a command's process group and the processes that left it by `setsid`: sends SIGTERM, and after the grace SIGKILL to those still
 * alive. Resolves when none is alive or all have been killed, without waiting for the dead to be reaped.
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
  // Searched again, because a stray may have started others, and a pid may have been reused.
  for (const stray of strays(mark, pid)) send(stray, "SIGKILL");
}

/**
 * Processes outside the group that have the mark in their environment. Linux only; it misses processes whose environment this account may
 * not read, and processes that cleared their environment.
 */
function strays(mark: string, group: number): number[] {
  return processNumbers().filter((pid) => {
    try {
      if (!readFileSync(`/proc/${pid}/environ`, "latin1").split("\0").includes(`${markName}=${mark}`)) return false;
      // The fields after the process name, which may contain spaces: state, parent, group.
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
 * @param reaped true: the group's leader has ended and its pid may be reused. The kernel does not reuse the pid while a member of the group
 * lives, so a live process with that pid, and its group, are unrelated.
 * @returns true if the group still had members
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
    // The process exists, but belongs to an account that this one may not signal.
    if (code === "EPERM") return true;
    throw error;
  }
}
