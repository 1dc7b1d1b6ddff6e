import { readFile, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { CarillonError } from "../base/errors.ts";
import { type Owner, run } from "./program.ts";

/**
 * PostgreSQL refuses to run as root, so root runs the server as a user without rights: the user who already owns the store; else the owner
 * of its folder or project (a volume in a container), who can then use the store without root too; else `postgres`; else `nobody`. initdb
 * needs a user that is in /etc/passwd.
 */
export async function chooseOwner(directory: string): Promise<Owner> {
  for (const path of [join(directory, "data"), join(directory, "run")]) {
    const found = await ownerOf(path);
    if (found) return found;
  }
  const users = parseUsers(await readFile("/etc/passwd", "utf8"));
  for (const path of [directory, dirname(directory)]) {
    const found = await ownerOf(path);
    if (found && users.some((user) => user.uid === found.uid)) return found;
  }
  const user = ["postgres", "nobody"]
    .map((name) => users.find((one) => one.name === name))
    .find((one) => one && one.uid > 0);
  if (user) return { uid: user.uid, gid: user.gid };
  throw new CarillonError("EMBEDDED_FAILED", "PostgreSQL refuses to run as root, and there is no user to run it as.", {
    hint: "Run as another user, or add one named postgres, or use a server of your own: DATABASE_URL=postgres://…",
  });
}

async function ownerOf(path: string): Promise<Owner | undefined> {
  const found = await stat(path).catch(() => undefined); // does not exist yet, as on the first start
  return found && found.uid > 0 ? { uid: found.uid, gid: found.gid } : undefined;
}

function parseUsers(passwd: string): { name: string; uid: number; gid: number }[] {
  return passwd.split("\n").flatMap((line) => {
    const [name, , uid, gid] = line.split(":");
    return name && uid && gid ? [{ name, uid: Number(uid), gid: Number(gid) }] : [];
  });
}

/** The kernel itself checks access, because it also considers access lists and mount options. */
export async function reaches(folder: string, owner: Owner): Promise<boolean> {
  return (await run("/bin/sh", ["-c", 'cd "$1"', "sh", folder], { owner })).code === 0;
}
