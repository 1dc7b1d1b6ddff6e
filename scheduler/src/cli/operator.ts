import { hostname, userInfo } from "node:os";

/** The author of changes that this command makes. */
export function operator(): string {
  try {
    return `${userInfo().username}@${hostname()}`;
  } catch {
    // The number of this process's user has no name on this machine.
    return `${process.getuid?.() ?? "someone"}@${hostname()}`;
  }
}
