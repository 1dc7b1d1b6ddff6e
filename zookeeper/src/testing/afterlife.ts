import { type ChildProcess, type ChildProcessByStdio, spawn } from "node:child_process";
import { mkdtempSync } from "node:fs";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Writable } from "node:stream";
import { fileURLToPath } from "node:url";

/** One keeper for each test process: see keeper.mjs. */
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

/** The child never outlives this process, not even stopped or when this process is killed. */
export function mortal<Child extends ChildProcess>(child: Child): Child {
  const { pid } = child;
  if (pid === undefined) return child; // it was not even started: its `error` event tells
  tell(`pid ${pid}`);
  child.once("exit", () => tell(`gone ${pid}`));
  return child;
}

/** A new folder that is removed when this process is gone. */
export function throwAwayFolder(name: string): string {
  const folder = mkdtempSync(join(tmpdir(), `carillon-${name}-`));
  tell(`folder ${folder}`);
  return folder;
}
