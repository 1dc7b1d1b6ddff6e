/**
 * Whoever reads what a command says may go: `carillon runs tail | head`, a terminal that is closed, a log collector that ended.
 * What becomes of the command then is its own affair: one that only looks has been seen enough of and ends, one that changes
 * something goes on to its end, and a node stops in order.
 */
import { exitCodes } from "./exit-codes.ts";

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

/** Nobody reads a pipe any more, or the terminal was closed. A file that its disk refuses is told of as any error. */
export const isUnread = ({ code }: NodeJS.ErrnoException, isTerminal: boolean): boolean =>
  code === "EPIPE" || (isTerminal && (code === "EIO" || code === "ENXIO"));

let watched = false;
let unread = false;
const endAtOnce = (): void => process.exit(exitCodes.ok);
const goOn = (): void => undefined;
let onUnread = endAtOnce;

/** Once a process, however many command lines it carries out. */
export function watchReaders(): void {
  if (watched) return;
  watched = true;
  process.stdout.on("error", (error) => {
    if (!isUnread(error, process.stdout.isTTY)) throw error;
    if (unread) return;
    unread = true;
    onUnread();
  });
  // Remarks and what handlers print are lost then, which is better than a node that ends over them; nowhere is left to say so.
  process.stderr.on("error", () => undefined);
}

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
