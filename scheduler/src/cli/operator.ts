import { hostname, userInfo } from "node:os";

/** The author that is recorded for changes made by this command: "user@host". */
export function operator(): string {
  try {
    return `${userInfo().username}@${hostname()}`;
  } catch {
    // The user id of this process has no name on this machine, so the numeric id is used.
    return `${process.getuid?.() ?? "someone"}@${hostname()}`;
  }
}
