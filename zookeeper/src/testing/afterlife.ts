import { type ChildProcess, type ChildProcessByStdio, spawn } from "node:child_process";
import { mkdtempSync } from "node:fs";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Writable } from "node:stream";
import { fileURLToPath } from "node:url";

/** The process that cleans up after this test process; see keeper.mjs. */
let keeper: ChildProcessByStdio<Writable, null, null> | undefined;

function tell(line: string): void {
  if (keeper === undefined) {
    const script = fileURLToPath(new URL("keeper.mjs", import.meta.url));
    keeper = spawn(process.execPath, [script], { stdio: ["pipe", "ignore", "inherit"], detached: true });
    keeper.unref();
    (keeper.stdin as Socket).unref();
  }
  keeper.stdin.write(`${line}\n`);
}

/** Makes sure that the child process is killed when this process ends, even if the child is stopped or this process is killed. */
export function mortal<Child extends ChildProcess>(child: Child): Child {
  const { pid } = child;
  if (pid === undefined) return child; // the process could not be started; its `error` event reports that
  tell(`pid ${pid}`);
  child.once("exit", () => tell(`gone ${pid}`));
  return child;
}

/** As `mortal`, for a process that a child process has started. @returns a function to call once the process has ended */
export function mortalPid(pid: number): () => void {
  tell(`pid ${pid}`);
  return () => tell(`gone ${pid}`);
}

/** Creates a temporary folder that is deleted when this process ends. */
export function throwAwayFolder(name: string): string {
  const folder = mkdtempSync(join(tmpdir(), `carillon-${name}-`));
  tell(`folder ${folder}`);
  return folder;
}
