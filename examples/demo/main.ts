/**
 * Carillon's demo: two processes on an embedded PostgreSQL, one of them killed with -9 half-way. See docs/explain/demo.md.
 *
 *   npm run demo                            until Ctrl-C; the kill happens after 15 s
 *   npm run demo -- --seconds 20            ends by itself; 4 at least
 *   npm run demo -- --seconds 20 --json     the figures as one JSON line on stdout, the live view on stderr
 *   npm run demo -- --directory FOLDER      keeps the store there, instead of in a folder that is removed at the end
 *
 * Exit code: 0 all accounted for; 1 something was lost or doubled, or the check was not possible.
 */
import { isCarillonError } from "carillon";
import { runDemo } from "./demo.ts";
import { Interrupted, Interruption } from "./interruption.ts";
import { readOptions, Trouble } from "./options.ts";
import { Screen } from "./screen.ts";

async function main(): Promise<void> {
  const options = readOptions(process.argv.slice(2));
  // With --json, stdout must contain only the JSON line, so the live view goes to stderr.
  const screen = new Screen(options.json ? process.stderr : process.stdout);
  const interruption = new Interruption();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => {
      if (!interruption.happened) screen.line("ending …", "dim");
      interruption.come();
    });
  }
  for (const stream of [process.stdout, process.stderr]) {
    stream.on("error", (error: NodeJS.ErrnoException) => {
      // EPIPE and EIO: the reader of the output has gone, as with `| head`, so the demo ends.
      if (error.code !== "EPIPE" && error.code !== "EIO") throw error;
      interruption.come();
    });
  }
  try {
    const { figures, passed } = await runDemo(options, screen, interruption);
    if (options.json) process.stdout.write(`${JSON.stringify(figures)}\n`);
    if (!passed) process.exitCode = 1;
  } catch (error) {
    if (!(error instanceof Interrupted)) throw error;
    screen.line("Ended before anything was due.", "dim");
    // The demo was interrupted before it had figures; with --json that is a failure.
    if (options.json) process.exitCode = 1;
  }
}

await main().catch((error: unknown) => {
  const expected = error instanceof Trouble || isCarillonError(error);
  const hint = isCarillonError(error) ? `\n  ${error.hint}` : "";
  process.stderr.write(
    `✗ ${expected ? (error as Error).message + hint : error instanceof Error ? error.stack : String(error)}\n`,
  );
  process.exitCode = 1;
});
