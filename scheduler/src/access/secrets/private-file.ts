import { closeSync, fstatSync, openSync, readFileSync } from "node:fs";
import { CarillonError, isCarillonError, messageOf } from "../../base/errors.ts";

const groupReads = 0o040;
const othersReach = 0o037;

/**
 * True if users other than the owner and root may read or change the file. The file's group may read it if this process belongs to the
 * group, as with `fsGroup` in Kubernetes. Root's group may read it too, because a systemd credential has that group when an ACL gives one
 * user access.
 * @param groups the groups of this process
 */
export function isOpenToOthers({ mode, gid }: { mode: number; gid: number }, groups: readonly number[]): boolean {
  return (mode & othersReach) !== 0 || ((mode & groupReads) !== 0 && gid !== 0 && !groups.includes(gid));
}

/** As `isOpenToOthers`, with this process's groups; always false on Windows, which has no file modes. */
export function isOpenHere(found: { mode: number; gid: number }): boolean {
  const groups = [process.getegid?.() ?? 0, ...(process.getgroups?.() ?? [])];
  return process.platform !== "win32" && isOpenToOthers(found, groups);
}

export interface PrivateFile {
  path: string;
  /** The content of the file as the subject of a sentence in an error message, such as "keys for secrets". */
  holds: string;
  /** Advice for the user if the file cannot be read. */
  hint: string;
}

/** Returns the text of a file. @throws SECRET_KEY_OPEN if other users may read or change the file, FILE_INVALID if it cannot be read */
export function readPrivate({ path, holds, hint }: PrivateFile): string {
  try {
    const file = openSync(path, "r");
    try {
      const found = fstatSync(file);
      if (isOpenHere(found))
        throw new CarillonError(
          "SECRET_KEY_OPEN",
          `${path} has ${holds} in it, and is of mode ${(found.mode & 0o777).toString(8).padStart(4, "0")}`,
          { hint: `Make it the process's alone: chmod 600 ${path}. If others could read it, replace what is in it.` },
        );
      return readFileSync(file, "utf8");
    } finally {
      closeSync(file);
    }
  } catch (cause) {
    if (isCarillonError(cause)) throw cause;
    throw new CarillonError("FILE_INVALID", `${holds} cannot be read from ${path}: ${messageOf(cause)}`, {
      hint,
      cause,
    });
  }
}
