import { CarillonError, isCarillonError, messageOf } from "../base/errors.ts";

/** `full` and `readOnly` match errors of the file system, as error codes of Node.js or as messages of PostgreSQL's programs. */
const full = /ENOSPC|EDQUOT|No space left on device|Disk quota exceeded/;
const readOnly = /EROFS|EACCES|EPERM|Read-only file system|Permission denied|Operation not permitted/;

/**
 * Matches errors of dynamic shared memory, which is in /dev/shm and often small in a container. PostgreSQL's message also contains "No
 * space left on device", as for a full disk.
 */
const sharedMemory = /shared memory segment/;

/** Matches log lines that a server also writes when nothing is wrong. */
const routine = /carillon: starting|LOG: {2}(starting|listening|database system|redo|invalid record length)/;

const hints = {
  full: "Free space on that disk, or put the store on another: its folder is the option `directory`.",
  sharedMemory:
    "The store's disk is not full: /dev/shm is. Give the container more (docker run --shm-size=256m), " +
    "or, for a store that was made already, set dynamic_shared_memory_type = 'mmap' in its data/postgresql.conf.",
  readOnly:
    "Make the folder writable for this user, or put the store elsewhere: its folder is the option `directory`. " +
    "Or use a server of your own: DATABASE_URL=postgres://…",
  failed: "The lines around it are in the log. A server of your own works too: DATABASE_URL=postgres://…",
};

/** The error for a failed file operation. `what` completes the sentence "The embedded store …", such as "cannot be started in /data". */
export function fileFailure(error: unknown, what: string): CarillonError {
  if (isCarillonError(error)) return error;
  const text = `${(error as NodeJS.ErrnoException)?.code ?? ""} ${messageOf(error)}`;
  const message = `The embedded store ${what}: ${messageOf(error)}`;
  if (full.test(text)) return new CarillonError("STORE_FULL", message, { hint: hints.full, cause: error });
  if (readOnly.test(text)) return new CarillonError("STORE_READ_ONLY", message, { hint: hints.readOnly, cause: error });
  return new CarillonError("EMBEDDED_FAILED", message, { hint: hints.failed, cause: error });
}

/**
 * The error for a server (or initdb) that ended unexpectedly, from its output. The cause is the first line about a full disk, otherwise the
 * first line of the highest severity; after that line PostgreSQL only shuts down.
 * @param free the free space on the store's disk in bytes; it is checked because on a full disk the log may lack the error
 */
export function serverFailure(what: string, output: string, log: string, free?: number): CarillonError {
  const lines = output.split("\n").filter((line) => line.trim() !== "");
  const severities = [full, /PANIC:/, /FATAL:/, /error:|ERROR:/, /./];
  const at =
    severities.map((severity) => lines.findIndex((line) => severity.test(line))).find((index) => index >= 0) ?? -1;
  // A wrong setting is reported in the line before the fatal error, so that line is included.
  const cause = lines
    .slice(Math.max(0, at - 1), at + 1)
    .filter((line, n, both) => n === both.length - 1 || !routine.test(line));
  const said = cause.map((line) => line.trim()).join("; ") || "it said nothing";
  if (full.test(said) && sharedMemory.test(said))
    return new CarillonError("EMBEDDED_FAILED", `/dev/shm is too small for the embedded server; ${what}: ${said}`, {
      hint: hints.sharedMemory,
    });
  if (full.test(said) || isFull(free)) return fullDisk(`${what}: ${said}`, free);
  if (readOnly.test(said)) {
    return new CarillonError("STORE_READ_ONLY", `The embedded store cannot be written; ${what}: ${said}`, {
      hint: hints.readOnly,
    });
  }
  return new CarillonError("EMBEDDED_FAILED", `${what}: ${said}`, { hint: `Log: ${log}. ${hints.failed}` });
}

/** The error if no server has accepted connections within `withinMs`; a full disk can cause that. */
export function overdueFailure(withinMs: number, log: string, free: number | undefined): CarillonError {
  const what = `the server did not accept connections within ${withinMs / 1000} s`;
  if (isFull(free)) return fullDisk(what, free);
  return new CarillonError("EMBEDDED_FAILED", `The embedded store does not start: ${what}.`, {
    hint: `Its log is ${log}. A process that is stopped (SIGSTOP) while it starts the server holds up all others.`,
  });
}

/** True if less than 1 MiB is free. @param free in bytes; undefined: unknown */
const isFull = (free: number | undefined): boolean => free !== undefined && free < 1024 * 1024;

function fullDisk(what: string, free: number | undefined): CarillonError {
  const left = free === undefined ? "" : ` (${Math.floor(free / 1024)} KiB free)`;
  return new CarillonError("STORE_FULL", `The disk of the embedded store is full${left}; ${what}`, {
    hint: hints.full,
  });
}

/** @throws the signal's reason if that is a CarillonError, otherwise CANCELLED */
export function throwIfAborted(signal: AbortSignal): void {
  if (!signal.aborted) return;
  if (isCarillonError(signal.reason)) throw signal.reason;
  throw new CarillonError("CANCELLED", "Opening the embedded store was given up.", { cause: signal.reason });
}

/** The code of a Node or PostgreSQL error; "": it has none. */
export function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | null | undefined)?.code;
  return typeof code === "string" ? code : "";
}
