/**
 * Decides which programs a worker runs. A task names a program; only the worker's own configuration allows it. The store, and anyone who
 * can write to it, cannot.
 *
 * Two paths are equal if they have the same file name in the same real folder. Links in the folder's path are followed (/bin is /usr/bin
 * on most systems); a link at the file itself is not, because many links may lead to one program that acts by the name it is called by.
 * The worker starts the allowed path, never the text that the task gave, so a link changed between check and start gains nothing.
 */
import { accessSync, closeSync, constants, openSync, readSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, isAbsolute, join, resolve } from "node:path";
import { CarillonError } from "../../base/errors.ts";
import { fixedPath, isShellName } from "../../task/command-rules.ts";

export interface Program {
  /** The path to start. */
  file: string;
  /** The file exists and can be executed. */
  present: boolean;
  /** The program is a shell, by its name or by its link's target. */
  shell: boolean;
}

/**
 * @param allow absolute paths, or names that are looked up in `path`
 * @throws COMMAND_NOT_ALLOWED, OPTION_INVALID for an entry of `allow` that is neither
 */
export function findProgram(name: string, allow: readonly string[], path: readonly string[] = fixedPath): Program {
  if (name.includes("/") && !(isAbsolute(name) && resolve(name) === name)) {
    throw notAllowed(name, "is a relative path, or one that winds", "Give the program's plain absolute path.");
  }
  for (const entry of allow) {
    if (entry === "" || (entry.includes("/") && !(isAbsolute(entry) && resolve(entry) === entry))) {
      throw new CarillonError("OPTION_INVALID", `allowed commands: ${JSON.stringify(entry)} is not a program`, {
        hint: 'Give absolute paths such as "/usr/bin/pg_dump", or bare names such as "pg_dump".',
      });
    }
  }
  const wanted = name.includes("/") ? place(name) : lookUp(name, path);
  for (const entry of allow) {
    const allowed = entry.includes("/") ? place(entry) : lookUp(entry, path);
    if (wanted !== null && allowed !== null && wanted === allowed) return programAt(allowed);
    // The same bare name, installed nowhere: allowed, but missing.
    if (wanted === null && allowed === null && name === entry)
      return { file: name, present: false, shell: isShell(name) };
  }
  throw notAllowed(
    name,
    "is not among the programs that this worker allows",
    "Add it to the worker's allowed commands.",
  );
}

function notAllowed(name: string, what: string, hint: string): CarillonError {
  return new CarillonError("COMMAND_NOT_ALLOWED", `${JSON.stringify(name.slice(0, 200))} ${what}`, { hint });
}

/** The real folder and the given file name. */
function place(file: string): string {
  return join(realPath(dirname(file)) ?? dirname(file), basename(file));
}

function lookUp(name: string, path: readonly string[]): string | null {
  if (name === "" || name === "." || name === "..") return null;
  for (const folder of path) {
    const file = join(folder, name);
    if (canExecute(file)) return place(file);
  }
  return null;
}

function programAt(file: string): Program {
  const present = canExecute(file);
  return { file, present, shell: isShell(file) || (present && isPlainText(file)) };
}

/** A link of any name may lead to a shell. */
function isShell(file: string): boolean {
  return isShellName(file) || isShellName(realPath(file) ?? file);
}

/** An executable text without "#!" is a shell's after all: the C library gives it to /bin/sh. */
function isPlainText(file: string): boolean {
  const start = Buffer.alloc(256);
  let length: number;
  try {
    const descriptor = openSync(file, "r");
    try {
      length = readSync(descriptor, start, 0, start.length, 0);
    } finally {
      closeSync(descriptor);
    }
  } catch {
    // A file that the worker cannot read cannot be read by a shell that it starts either.
    return false;
  }
  return start.toString("latin1", 0, 2) !== "#!" && !start.subarray(0, length).includes(0);
}

function canExecute(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    // Absent, or not accessible: either way it cannot be run, and the caller reports that.
    return false;
  }
}

function realPath(file: string): string | null {
  try {
    return realpathSync(file);
  } catch {
    // The file does not exist; its path is then compared as written.
    return null;
  }
}
