/**
 * Handles a reader of standard output that goes away: `carillon runs tail | head`, a closed terminal, a log collector that ended. The
 * reaction depends on the command: a command that only reads ends, a command that changes something completes its work, and a node stops
 * gracefully.
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
  "rules",
  "profiles",
]);

/** True for commands that change nothing, by their last name; `apply --plan` is `diff`. */
const onlyLooks = (command: string, { plan = false }: { plan?: boolean }): boolean =>
  looking.has(command) || (command === "apply" && plan);

/** True if the reader of a pipe has gone, or the terminal was closed. A file on a full disk is a failure instead. */
export const isUnread = ({ code }: NodeJS.ErrnoException, isTerminal: boolean): boolean =>
  code === "EPIPE" || (isTerminal && (code === "EIO" || code === "ENXIO"));

let watched = false;
let unread = false;
let refused = false;
const endAtOnce = (): void => process.exit(refused ? exitCodes.failed : exitCodes.ok);
const goOn = (): void => undefined;
let onUnread = endAtOnce;

/** Registers the handlers once per process, however many command lines the process executes. */
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
  // Remarks and output of handlers are then lost, which is better than a node that ends because of them. There is no channel left to report
  // the loss.
  process.stderr.on("error", () => undefined);
}

/** The exit code once all output is written or refused: a command whose output could not be written has failed. */
export const exitAfterOutput = (exit: ExitCode): ExitCode =>
  refused && exit === exitCodes.ok ? exitCodes.failed : exit;

/** Sets the reaction until the process ends, because a command writes its last output after its work. */
export function readBy(command: string, options: { plan?: boolean }): void {
  onUnread = onlyLooks(command, options) ? endAtOnce : goOn;
}

/**
 * Sets what to do when standard output loses its reader; runs `work` at once if the reader has already gone. @returns a function that
 * restores the previous reaction
 */
export function whenUnread(work: () => void): () => void {
  const before = onUnread;
  onUnread = work;
  if (unread) work();
  return () => {
    onUnread = before;
  };
}
