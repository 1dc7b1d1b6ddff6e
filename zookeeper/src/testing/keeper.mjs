/**
 * Cleans up after a test process, however that process ends. It reads lines from its standard input: `pid N` (a process was
 * started), `gone N` (it has ended), `folder PATH` (a throw-away folder). The input is a pipe that only the test process holds, so
 * when the test process ends (normally, by a crash, by kill -9), all processes that still live, even stopped ones, are killed and
 * the folders are removed.
 */
import { rmSync } from "node:fs";
import { createInterface } from "node:readline";

/** @type {Set<number>} */
const pids = new Set();
/** @type {Set<string>} */
const folders = new Set();

for (const signal of /** @type {const} */ (["SIGINT", "SIGTERM", "SIGHUP"])) {
  process.on(signal, () => undefined); // only the end of the test process ends the keeper
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
        // The process ended at the same moment, so there is nothing left to kill.
      }
    }
    for (const folder of folders) rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  });
