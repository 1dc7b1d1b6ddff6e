import { ZooKeeperError } from "./errors.ts";
import { limits } from "./limits.ts";

/** Characters that ZooKeeper refuses in a path. They are checked here, because a server would answer only BAD_ARGUMENTS. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for.
const forbidden = /[\u0000-\u001f\u007f-\u009f\ud800-\uf8ff\ufff0-\uffff]/;

/**
 * @param sequential true if the server will append a number; the path may then end in a slash
 * @throws PATH_INVALID
 */
export function checkPath(path: string, sequential = false): void {
  const problem = problemOf(path, sequential);
  if (problem) {
    throw new ZooKeeperError("PATH_INVALID", `the path ${JSON.stringify(String(path).slice(0, 200))} ${problem}`, {
      path: String(path),
      hint: "a path looks like /a/b: slashes between names, none at its end",
    });
  }
}

function problemOf(path: string, sequential: boolean): string | undefined {
  if (typeof path !== "string") return "is not a text";
  if (path === "/") return undefined;
  if (path[0] !== "/") return "does not begin with a slash";
  if (path.length > limits.pathChars) return `is longer than ${limits.pathChars} characters`;
  const last = path.charCodeAt(path.length - 1) === 47;
  if (last && !sequential) return "ends with a slash";
  if (path.includes("//")) return "has an empty name in it";
  if (path.includes("/.") && /\/\.\.?(\/|$)/.test(sequential ? `${path}0` : path)) return "has . or .. as a name in it";
  if (forbidden.test(path)) return "has a character in it that ZooKeeper refuses";
  return undefined;
}

/** Returns the parent's path: `/a/b` → `/a`, `/a` → `/` */
export function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/")) || "/";
}

/** Returns the child's path: `/a` and `b` → `/a/b`, `/` and `b` → `/b` */
export const childOf = (parent: string, name: string): string => `${parent === "/" ? "" : parent}/${name}`;

/** Prefixes the path with the chroot; a chroot of "" means none. */
export function withChroot(chroot: string, path: string): string {
  if (chroot === "") return path;
  return path === "/" ? chroot : chroot + path;
}

/** Removes the chroot. A path outside the chroot, which only a recursive watch on an ancestor could report, is returned unchanged. */
export function withoutChroot(chroot: string, path: string): string {
  if (path === chroot) return "/";
  return chroot !== "" && path.startsWith(`${chroot}/`) ? path.slice(chroot.length) : path;
}
