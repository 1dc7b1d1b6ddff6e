/**
 * Cleans up after a test process however that one ends. It is told on its standard input, a line each: `pid N` lives,
 * `gone N` has ended, `folder PATH` is throw-away. The input is a pipe that only the test process holds, so when it ends
 * (done, crashed, killed with -9), whatever still lives is killed, stopped processes too, and the folders are removed.
 */
import { rmSync } from "node:fs";
import { createInterface } from "node:readline";

/** @type {Set<number>} */
const pids = new Set();
/** @type {Set<string>} */
const folders = new Set();

for (const signal of /** @type {const} */ (["SIGINT", "SIGTERM", "SIGHUP"])) {
  process.on(signal, () => undefined); // the test process decides when the end is
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
        // It ended at the same moment; that was what we wanted.
      }
    }
    for (const folder of folders) rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  });
