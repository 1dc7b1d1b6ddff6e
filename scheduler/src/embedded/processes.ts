import { readdir, readFile, stat } from "node:fs/promises";
import { codeOf } from "./failure.ts";
import { run } from "./program.ts";

/** The running PostgreSQL processes of one data folder. */
export interface ServerProcesses {
  /** The main server process, if it runs. */
  readonly postmaster: number | undefined;
  /** The child processes of the server; if `postmaster` is undefined, they are orphans that may still write. */
  readonly children: readonly number[];
}

interface Process {
  readonly pid: number;
  readonly parent: number;
  readonly child: boolean;
}

/**
 * Finds the server's processes, on Linux by their working directory, because a pid in a file may belong to another process by now. Every
 * PostgreSQL process has the data folder as its working directory until it ends (a zombie has none), and a child process renames itself
 * "postgres: …". Unless this process is root, it does not see processes of other users, and need not: PostgreSQL only starts if its user
 * owns the folder.
 */
export async function serverProcesses(data: string): Promise<ServerProcesses> {
  const found = process.platform === "linux" ? await fromProc(data) : await fromPs(data);
  const pids = new Set(found.map((one) => one.pid));
  // A child process that was forked a moment ago has not renamed itself yet, but its parent is in the list.
  const postmaster = found.find((one) => !one.child && !pids.has(one.parent))?.pid;
  return { postmaster, children: found.filter((one) => one.pid !== postmaster).map((one) => one.pid) };
}

async function fromProc(data: string): Promise<Process[]> {
  const folder = await identify(data);
  if (folder === undefined) return [];
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const all = await Promise.all(pids.map((pid) => oneFromProc(Number(pid), folder)));
  return all.filter((one) => one !== undefined);
}

/** Identifies a folder by device and inode instead of its path, because a folder that is mounted twice has two paths. */
async function identify(path: string): Promise<string | undefined> {
  try {
    const { dev, ino } = await stat(path, { bigint: true });
    return `${dev}:${ino}`;
  } catch (error) {
    // The folder does not exist yet; or the process has ended, is a zombie, or belongs to another user.
    if (["ENOENT", "ESRCH", "EACCES", "EPERM"].includes(codeOf(error))) return undefined;
    throw error;
  }
}

async function oneFromProc(pid: number, folder: string): Promise<Process | undefined> {
  try {
    if ((await identify(`/proc/${pid}/cwd`)) !== folder) return undefined;
    const text = await readFile(`/proc/${pid}/stat`, "utf8");
    const end = text.lastIndexOf(")");
    if (text.slice(text.indexOf("(") + 1, end) !== "postgres") return undefined;
    const [, parent] = text.slice(end + 2).split(" ");
    const title = await readFile(`/proc/${pid}/cmdline`, "utf8");
    return { pid, parent: Number(parent), child: title.startsWith("postgres:") };
  } catch (error) {
    if (["ENOENT", "ESRCH"].includes(codeOf(error))) return undefined; // the process has ended meanwhile
    throw error;
  }
}

/** Without /proc, only the main server process can be identified, by its arguments; its children are found by their parent pid. */
async function fromPs(data: string): Promise<Process[]> {
  const { output } = await run("ps", ["-axo", "pid=,ppid=,command="]);
  const rows = output.split("\n").flatMap((line) => {
    const [, pid, parent, command] = /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line) ?? [];
    return command === undefined ? [] : [{ pid: Number(pid), parent: Number(parent), command }];
  });
  const servers = rows.filter((row) => row.command.includes(`/postgres -D ${data} `));
  const pids = new Set(servers.map((row) => row.pid));
  return [
    ...servers.map(({ pid, parent }) => ({ pid, parent, child: false })),
    ...rows
      .filter((row) => pids.has(row.parent) && !pids.has(row.pid))
      .map(({ pid, parent }) => ({ pid, parent, child: true })),
  ];
}

/** Sends a signal to a process that may have ended already. @returns false if it no longer exists */
export function signalProcess(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal);
  } catch (error) {
    if (codeOf(error) === "ESRCH") return false;
    throw error;
  }
}
