import { readFile, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { CarillonError } from "../base/errors.ts";
import { type Owner, run } from "./program.ts";

/**
 * Chooses the unprivileged user that runs the server, because PostgreSQL refuses to run as root. This is the user who owns the
 * store already; otherwise the owner of its folder or project (such as a container's volume), who can then also use the store
 * without root; otherwise `postgres`; otherwise `nobody`. For a new store the user must be in /etc/passwd, because initdb
 * requires that.
 * @throws EMBEDDED_FAILED if there is no such user
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
  const found = await stat(path).catch(() => undefined); // the path does not exist at the first start
  return found && found.uid > 0 ? { uid: found.uid, gid: found.gid } : undefined;
}

function parseUsers(passwd: string): { name: string; uid: number; gid: number }[] {
  return passwd.split("\n").flatMap((line) => {
    const [name, , uid, gid] = line.split(":");
    return name && uid && gid ? [{ name, uid: Number(uid), gid: Number(gid) }] : [];
  });
}

/**
 * True if the user can enter the folder. Runs `cd` as that user, because only the kernel considers access control lists and mount options
 * too.
 */
export async function reaches(folder: string, owner: Owner): Promise<boolean> {
  return (await run("/bin/sh", ["-c", 'cd "$1"', "sh", folder], { owner })).code === 0;
}
