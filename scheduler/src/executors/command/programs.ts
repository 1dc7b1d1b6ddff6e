/**
 * Decides which programs a worker runs. A task names a program, but only the worker's own configuration can allow it; the store
 * and its users cannot. Two paths are equal if the file names and the real paths of their folders are equal. Links within the
 * folder's path are resolved (/bin is a link to /usr/bin on most systems). A link that is the file itself is not resolved,
 * because one program may behave differently under several names. The worker starts the path from its allow list and not the text
 * from the task, so a later change of a link in the task's path has no effect.
 */
import { accessSync, closeSync, constants, openSync, readSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, isAbsolute, join, resolve } from "node:path";
import { CarillonError } from "../../base/errors.ts";
import { fixedPath, isShellName } from "../../task/command-rules.ts";

export interface Program {
  /** The path of the program to start. */
  file: string;
  /** True if the file exists and is executable. */
  present: boolean;
  /** True if the program is a shell: by its name, by the name that a link resolves to, or because it is a script without "#!". */
  shell: boolean;
}

/**
 * Finds the allowed program that a task names.
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
    // The allowed name is not installed in any folder of `path`.
    if (wanted === null && allowed === null && name === entry)
      return { file: name, present: false, shell: isShell(name) };
  }
  throw notAllowed(
    name,
    "is not among the programs that this worker allows",
    "Add it to the worker's allowed commands.",
  );
}

/** A program that was found is not looked for again for this time, in ms. */
const foundForMs = 1_000;
const foundMost = 1_000;
/** By allow list, and then by the name in the task: the programs found, and when, by the monotonic clock. */
const found = new WeakMap<readonly string[], Map<string, { program: Program; atMono: number }>>();

/**
 * As `findProgram` with the fixed path, but looks at the disk at most once a second for each name: it takes a quarter of a millisecond, in
 * which this process does nothing else, and thousands of commands may be due at once.
 * @param allow the worker's list, which does not change
 */
export function recentProgram(name: string, allow: readonly string[], nowMono: number): Program {
  const known = found.get(allow);
  const last = known?.get(name);
  if (last !== undefined && nowMono - last.atMono < foundForMs) return last.program;
  const program = findProgram(name, allow);
  // A program that is missing for a moment, as during a deployment, is looked for by each run.
  if (!program.present) return program;
  const names = known === undefined || known.size >= foundMost ? new Map() : known;
  found.set(allow, names.set(name, { program, atMono: nowMono }));
  return program;
}

function notAllowed(name: string, what: string, hint: string): CarillonError {
  return new CarillonError("COMMAND_NOT_ALLOWED", `${JSON.stringify(name.slice(0, 200))} ${what}`, { hint });
}

/** Resolves links in the folder's path, but not the file itself. */
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

/** True if the file or the target of its link has the name of a shell. */
function isShell(file: string): boolean {
  return isShellName(file) || isShellName(realPath(file) ?? file);
}

/** True for a text file without "#!": although it is started without a shell, the C library runs it with /bin/sh. */
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
    // If the worker cannot read the file, neither can a shell started by the worker.
    return false;
  }
  return start.toString("latin1", 0, 2) !== "#!" && !start.subarray(0, length).includes(0);
}

function canExecute(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    // The file is missing or inaccessible; the caller reports that it cannot be run.
    return false;
  }
}

function realPath(file: string): string | null {
  try {
    return realpathSync(file);
  } catch {
    // The file or folder does not exist or is inaccessible; the caller then compares the path as written.
    return null;
  }
}
