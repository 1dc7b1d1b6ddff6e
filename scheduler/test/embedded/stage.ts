import { type ChildProcess, spawn } from "node:child_process";
import { chmod, chown, mkdtemp, readFile, realpath, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath, pathToFileURL } from "node:url";
import pg from "pg";
import { afterEach, expect } from "vitest";
import { serverProcesses } from "../../src/embedded/processes.ts";

export { until } from "../../../zookeeper/test/support/until.ts";

export interface Owner {
  uid: number;
  gid: number;
}

export const isRoot = process.getuid?.() === 0;

/** Returns the user `nobody`, for tests that run as root and need an unprivileged user. */
export async function ordinaryUser(): Promise<Owner> {
  const line = (await readFile("/etc/passwd", "utf8")).split("\n").find((text) => text.startsWith("nobody:"));
  const [, , uid, gid] = (line ?? "").split(":");
  return { uid: Number(uid), gid: Number(gid) };
}

export type Told = { event: string; [name: string]: unknown };

export interface User {
  readonly child: ChildProcess;
  /** Resolves with the next unread line that reports this event. Rejects if the process reports an error or ends without it. */
  next(event: string): Promise<Told>;
  tell(line: string): void;
  kill(): Promise<void>;
  readonly ended: Promise<number | null>;
}

const folders: string[] = [];
const users: User[] = [];
const endings: (() => Promise<void>)[] = [];

/** Registers a function that is called after the test, before the test's folders are removed. */
export const finallyDo = (ending: () => Promise<void>) => endings.unshift(ending);

/** Creates a folder that every user can reach. After the test, the folder is removed and a server in it is killed. */
export async function scratch(owner?: Owner): Promise<string> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "carillon-test-")));
  await chmod(folder, 0o755);
  if (owner) await chown(folder, owner.uid, owner.gid);
  folders.push(folder);
  return folder;
}

/** Data folders outside of `scratch` whose server must be killed after the test. */
export const dataFolders = new Set<string>();

/** Kills PostgreSQL's processes that use this data folder. */
export async function killServer(data: string): Promise<void> {
  for (;;) {
    const { postmaster, children } = await serverProcesses(data);
    const pids = [...(postmaster === undefined ? [] : [postmaster]), ...children];
    if (pids.length === 0) return;
    for (const pid of pids) kill(pid, "SIGKILL");
    await pause(10);
  }
}

export function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

afterEach(async () => {
  for (const user of users.splice(0)) await user.kill();
  for (const folder of folders) dataFolders.add(join(folder, "data"));
  for (const data of dataFolders) await killServer(data);
  dataFolders.clear();
  for (const ending of endings.splice(0)) await ending();
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true });
});

const program = fileURLToPath(new URL("user.ts", import.meta.url));
const register = join(dirname(createRequire(import.meta.url).resolve("jiti/package.json")), "lib", "jiti-register.mjs");

export interface UserOptions {
  directory: string;
  binaries?: string;
  open?: "told";
}

/**
 * Starts a process that uses an embedded store.
 * @param where the user to run as; for a user that cannot read this program, also the paths of a copy
 */
export function startUser(
  options: UserOptions,
  where: { owner?: Owner | undefined; program?: string; register?: string; temporary?: string } = {},
): User {
  const module = pathToFileURL(where.register ?? register).href;
  const child = spawn(process.execPath, ["--import", module, where.program ?? program, JSON.stringify(options)], {
    stdio: ["pipe", "pipe", "inherit"],
    uid: where.owner?.uid,
    gid: where.owner?.gid,
    cwd: "/",
    // jiti writes its cache to TMPDIR if it may not write beside the modules.
    env: { ...process.env, HOME: "/nonexistent", TMPDIR: where.temporary ?? tmpdir() },
  });
  const told: Told[] = [];
  let waiting: (() => void)[] = [];
  const wake = () => {
    for (const one of waiting.splice(0)) one();
  };
  let over = false;
  const ended = new Promise<number | null>((resolve) => {
    child.on("exit", (code) => {
      over = true;
      resolve(code);
      wake();
    });
  });
  createInterface({ input: child.stdout as NodeJS.ReadableStream }).on("line", (line) => {
    told.push(JSON.parse(line) as Told);
    wake();
  });
  child.stdin?.on("error", () => wake());
  const user: User = {
    child,
    ended,
    tell: (line) => child.stdin?.write(`${line}\n`),
    async next(event) {
      for (;;) {
        const at = told.findIndex((one) => one.event === event || one.event === "error");
        const [found] = at < 0 ? [] : told.splice(at, 1);
        if (found?.event === event) return found;
        if (found) throw new Error(`waited for "${event}": ${JSON.stringify(found)}`);
        if (over) throw new Error(`waited for "${event}", but the process ended; it told ${JSON.stringify(told)}`);
        await new Promise<void>((resolve) => waiting.push(resolve));
      }
    },
    async kill() {
      child.kill("SIGKILL");
      await ended;
    },
  };
  waiting = [];
  users.push(user);
  return user;
}

/** Sends one statement on a new connection. @returns the rows */
export async function query(url: string, text: string): Promise<Record<string, unknown>[]> {
  // If the server dies while data is written to it, pg may never report the end of the connection, so these limits are needed.
  const limits = { connectionTimeoutMillis: 10_000, query_timeout: 10_000 };
  const client = new pg.Client({ connectionString: url, ...limits });
  client.on("error", () => undefined); // the statement is rejected anyway
  await client.connect();
  try {
    return (await client.query(text)).rows as Record<string, unknown>[];
  } finally {
    // After the server's death, pg may not report the end of the client either, so the wait is limited.
    await Promise.race([client.end().catch(() => undefined), pause(1_000, undefined, { ref: false })]);
  }
}

export async function postmasterOf(directory: string): Promise<number> {
  const { postmaster } = await serverProcesses(join(directory, "data"));
  expect(postmaster, `a server runs on ${directory}`).toBeDefined();
  return postmaster as number;
}

export async function isStopped(directory: string): Promise<boolean> {
  const { postmaster, children } = await serverProcesses(join(directory, "data"));
  return postmaster === undefined && children.length === 0;
}

/** Returns how many users of the embedded store the server counts. */
export async function countUsers(url: string): Promise<number> {
  const text = "select count(*)::int as n from pg_stat_activity where application_name like 'carillon embedded %'";
  return (await query(url.replace("//carillon@", "//carillon_owner@"), text))[0]?.n as number;
}
