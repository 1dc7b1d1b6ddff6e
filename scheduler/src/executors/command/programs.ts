/**
 * Decides which programs a worker runs. A task names a program; only the worker's own configuration can allow it. Neither the store, nor
 * anyone who can write to it, can allow a program.
 * Two paths are equal if they have the same file name in the same real folder. Links in the folder's path are followed (/bin is /usr/bin on
 * most systems); a link at the file itself is not, because many links may lead to one program that acts by the name it is called by. The
 * worker starts the allowed path, never the text from the task, so changing a link between check and start gains nothing.
 */
import { accessSync, closeSync, constants, openSync, readSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, isAbsolute, join, resolve } from "node:path";
import { CarillonError } from "../../base/errors.ts";
import { fixedPath, isShellName } from "../../task/command-rules.ts";

export interface Program {
  /** The path of the program to start. */
  file: string;
  /** True if the file exists and can be executed. */
  present: boolean;
  /** True if the program is a shell, by its own name or by that of its link's target. */
  shell: boolean;
}

/**
 * @param allow absolute paths, or names that are looked up in `path`
 * @throws COMMAND_NOT_ALLOWED; OPTION_INVALID for an entry of `allow` that is neither
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
    // The name is in the list but installed nowhere: allowed, but missing.
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

/** The real path of the folder, with the given file name. */
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

/** A link with any name may lead to a shell. */
function isShell(file: string): boolean {
  return isShellName(file) || isShellName(realPath(file) ?? file);
}

/** An executable text file without "#!" is run by a shell after all: the C library passes it to /bin/sh. */
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
    // If the worker cannot read the file, a shell that it starts cannot either.
    return false;
  }
  return start.toString("latin1", 0, 2) !== "#!" && !start.subarray(0, length).includes(0);
}

function canExecute(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    // The file is absent or not accessible. It cannot be run either way, and the caller reports that.
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
