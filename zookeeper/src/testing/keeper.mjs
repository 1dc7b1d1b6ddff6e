/**
 * Cleans up after a test process, however that process ends. It reads lines from its standard input: `pid N` (a process was started),
 * `gone N` (the process has ended), `folder PATH` (a temporary folder). Only the test process has the other end of this pipe. When the
 * test process ends, even by a crash or SIGKILL, the keeper kills all processes that are left, even stopped ones, and deletes the folders.
 */
import { rmSync } from "node:fs";
import { createInterface } from "node:readline";

/** @type {Set<number>} */
const pids = new Set();
/** @type {Set<string>} */
const folders = new Set();

for (const signal of /** @type {const} */ (["SIGINT", "SIGTERM", "SIGHUP"])) {
  process.on(signal, () => undefined); // the keeper ends only after the test process
}

createInterface({ input: process.stdin })
  .on("line", (line) => {
    const [word, rest = ""] = /^(\w+) (.*)$/.exec(line)?.slice(1) ?? [];
    if (word === "pid") pids.add(Number(rest));
    else if (word === "gone") pids.delete(Number(rest));
    else if (word === "folder") folders.add(rest);
  })
  .on("close", () => {
    for (const pid of pids) {
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // The process has just ended by itself.
      }
    }
    for (const folder of folders) rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  });
