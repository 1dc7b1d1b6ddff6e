/**
 * Builds the console into its own package, console/dist/site, if one of its inputs has changed: its sources and configuration, the lock
 * file, or the scheduler's compiled code that it uses.
 */
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { filesIn, make } from "./build.mjs";
import { fail, root } from "./ready.mjs";

/** The folders of the scheduler with the API contract and the pure code that the console uses. */
const pureRooms = ["base", "schedule", "task", "run", "slots", "access", "api"];

/** Builds the console; `compile()` must have run before. */
export function buildConsole() {
  const console = join(root, "console");
  const config = join(console, "vite.config.ts");
  make({
    what: "the console",
    out: join(console, "dist/site"),
    of: [
      ...filesIn(join(console, "src")),
      ...["index.html", "package.json"].map((path) => join(console, path)),
      ...[config, join(root, "scripts/third-party.mjs")],
      ...["scheduler/package.json", "package-lock.json"].map((path) => join(root, path)),
      ...pureRooms
        .flatMap((room) => filesIn(join(root, "scheduler/dist", room)))
        .filter((path) => path.endsWith(".js")),
    ],
    program: join(root, "node_modules/vite/bin/vite.js"),
    args: ["build", "--logLevel", "warn", "--config", config],
    cwd: console,
  });
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  try {
    buildConsole();
  } catch (error) {
    fail(error);
  }
}
