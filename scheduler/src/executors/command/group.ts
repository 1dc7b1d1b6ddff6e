import { readdirSync, readFileSync } from "node:fs";
import { type Clock, pause } from "../../base/clock.ts";
import { atSecondSignal } from "../../base/stop-on-signals.ts";

const pollMs = 20;

/** One callback for each running command's process group. All share one listener, because Node.js warns of a leak above ten listeners. */
const ends = new Set<() => void>();
const endAll = () => {
  for (const end of ends) end();
};
let forget = (): void => undefined;

/**
 * Sends SIGTERM to a process group when this process exits or a signal ends it (see `atSecondSignal`); impossible if this process
 * is killed. This is needed because a command has its own session, which gets no signals from this process's terminal. A group
 * that already got SIGTERM gets SIGKILL instead, because this process can no longer send it after the grace period.
 * @param reaped true if the group's leader has ended
 * @param told true if the group has already got SIGTERM
 * @returns a function that removes the callback; to be called when the group has ended
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

/** The environment variable that marks the processes of one command, including those that have left its process group. */
export const markName = "CARILLON_COMMAND";

/** The process group of a command. */
export interface Group {
  /** The pid of the group's leader, which is also the group's id. */
  pid: number;
  /** The value of the variable `markName` in the command's environment. */
  mark: string;
  /** True if the leader has ended, so that its pid may be reused. */
  reaped: () => boolean;
}

/**
 * Ends a command's process group and, on Linux, the processes with its mark that have left the group with `setsid`: sends SIGTERM
 * and, `graceMs` later, SIGKILL to those that still run. Resolves when none is running or all have been killed; does not wait
 * until killed processes have been reaped.
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
  // Searches for marked processes again: they may have started further processes, and a pid may have been reused.
  for (const stray of strays(mark, pid)) send(stray, "SIGKILL");
}

/**
 * Finds processes outside the group that have the mark in their environment. Works on Linux only, and misses processes whose environment
 * this account may not read or that have cleared their environment.
 */
function strays(mark: string, group: number): number[] {
  return processNumbers().filter((pid) => {
    try {
      if (!readFileSync(`/proc/${pid}/environ`, "latin1").split("\0").includes(`${markName}=${mark}`)) return false;
      // The fields after the process name (which may contain spaces and parentheses) are: state, parent pid, process group.
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
 * Sends a signal to a process group.
 * @param reaped true if the group's leader has ended. The kernel does not reuse the leader's pid while the group has members; so if a
 * process with that pid exists then, it and its group are unrelated to the command.
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
    // EPERM: the process exists, but belongs to an account that this one may not signal.
    if (code === "EPERM") return true;
    throw error;
  }
}
