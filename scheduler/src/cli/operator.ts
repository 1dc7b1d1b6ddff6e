import { hostname, userInfo } from "node:os";

/** The author recorded for changes by this command: the user and the host. */
export function operator(): string {
  try {
    return `${userInfo().username}@${hostname()}`;
  } catch {
    // This process's user id has no name on this machine.
    return `${process.getuid?.() ?? "someone"}@${hostname()}`;
  }
}
