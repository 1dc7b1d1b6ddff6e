/**
 * Handles the loss of the reader of standard output: `carillon runs tail | head`, a closed terminal, or a log collector that ended. A
 * command that only reads exits at once, a command that changes something completes its work, and a node stops gracefully.
 */
import { CarillonError, messageOf } from "../base/errors.ts";
import { type ExitCode, exitCodes } from "./exit-codes.ts";
import type { Terminal } from "./screen/terminal.ts";

const looking: ReadonlySet<string> = new Set([
  "list",
  "show",
  "next",
  "preview",
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

/** True for commands that change nothing, identified by the last word of their name; `apply --plan` does the same as `diff`. */
const onlyLooks = (command: string, { plan = false }: { plan?: boolean }): boolean =>
  looking.has(command) || (command === "apply" && plan);

/** True if the reader of a pipe has ended or the terminal was closed; false for other write errors, such as a full disk. */
export const isUnread = ({ code }: NodeJS.ErrnoException, isTerminal: boolean): boolean =>
  code === "EPIPE" || (isTerminal && (code === "EIO" || code === "ENXIO"));

let watched = false;
let unread = false;
let refused = false;
const endAtOnce = (): void => process.exit(refused ? exitCodes.failed : exitCodes.ok);
const goOn = (): void => undefined;
let onUnread = endAtOnce;

/** Registers the error handlers once per process, even if the process executes several command lines, as tests do. */
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
  // Errors of standard error are ignored, so that they do not end a node. The text is lost, and no channel is left to report the loss.
  process.stderr.on("error", () => undefined);
}

/** The exit code at the end of all output: `failed` instead of `ok` if standard output could not be written. */
export const exitAfterOutput = (exit: ExitCode): ExitCode =>
  refused && exit === exitCodes.ok ? exitCodes.failed : exit;

/**
 * Sets the reaction to the loss of standard output's reader for the rest of the process, because a command writes its last
 * output after its work.
 */
export function readBy(command: string, options: { plan?: boolean }): void {
  onUnread = onlyLooks(command, options) ? endAtOnce : goOn;
}

/**
 * Sets the reaction to the loss of standard output's reader; calls `work` at once if the reader is already lost. @returns a function that
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
