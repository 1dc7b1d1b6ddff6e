/**
 * Whoever reads what a command says may go: `carillon runs tail | head`, a terminal that is closed, a log collector that ended.
 * What becomes of the command then is its own affair: one that only looks has been seen enough of and ends, one that changes
 * something goes on to its end, and a node stops in order.
 */
import { CarillonError, messageOf } from "../base/errors.ts";
import { type ExitCode, exitCodes } from "./exit-codes.ts";
import type { Terminal } from "./screen/terminal.ts";

const looking: ReadonlySet<string> = new Set([
  "list",
  "show",
  "next",
  "tail",
  "check",
  "diff",
  "simulate",
  "cron",
  "top",
  "nodes",
  "doctor",
  "completion",
  "alarms",
  "silences",
  "profiles",
]);

/** By the word that names it; `apply --plan` is `diff`. */
const onlyLooks = (command: string, { plan = false }: { plan?: boolean }): boolean =>
  looking.has(command) || (command === "apply" && plan);

/** Nobody reads a pipe any more, or the terminal was closed. A file that its disk refuses is a failure. */
export const isUnread = ({ code }: NodeJS.ErrnoException, isTerminal: boolean): boolean =>
  code === "EPIPE" || (isTerminal && (code === "EIO" || code === "ENXIO"));

let watched = false;
let unread = false;
let refused = false;
const endAtOnce = (): void => process.exit(refused ? exitCodes.failed : exitCodes.ok);
const goOn = (): void => undefined;
let onUnread = endAtOnce;

/** Once a process, however many command lines it carries out. */
export function watchReaders(terminal: Terminal): void {
  if (watched) return;
  watched = true;
  process.stdout.on("error", (error) => {
    if (unread) return;
    unread = true;
    if (!isUnread(error, process.stdout.isTTY)) {
      refused = true;
      terminal.failure(
        new CarillonError("OUTPUT_FAILED", `standard output cannot be written: ${messageOf(error)}`, {
          hint: "Is the disk full, or the file not to be written? What was to be done is done all the same, by commands that change something.",
        }),
      );
    }
    onUnread();
  });
  // Remarks and what handlers print are lost then, which is better than a node that ends over them; nowhere is left to say so.
  process.stderr.on("error", () => undefined);
}

/** Of a command whose work came to that: it failed, if nobody can read what it found. Once all that it says is written or refused. */
export const exitAfterOutput = (exit: ExitCode): ExitCode =>
  refused && exit === exitCodes.ok ? exitCodes.failed : exit;

/** From a command's begin to the end of the process: its last words come after its work. */
export function readBy(command: string, options: { plan?: boolean }): void {
  onUnread = onlyLooks(command, options) ? endAtOnce : goOn;
}

/** What to do besides when nobody reads standard output any more; at once where that is so already. @returns takes it back */
export function whenUnread(work: () => void): () => void {
  const before = onUnread;
  onUnread = work;
  if (unread) work();
  return () => {
    onUnread = before;
  };
}
