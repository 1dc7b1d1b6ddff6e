/** A primary and a standby that streams from it, for tests in which one takes the other's place. */
import { chownSync, mkdirSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import { Trouble } from "../ready.mjs";
import { machinePostgres, startPostgres } from "./postgres.mjs";
import { freePort, prepare, serverUser } from "./server.mjs";

/** @typedef {{ url: string, child: import("node:child_process").ChildProcess }} One */

/**
 * @param {string} home a folder that the servers' user can pass through
 * @param {boolean} durable writes must reach the disk
 * @param {(primary: string) => Promise<string>} lineOf makes the way by which the standby reaches the primary: a forwarder that can
 *   be held up. Given the primary's URL, it returns its own
 * @returns {Promise<{ primary: One, standby: One }>}
 */
export async function startPair(home, durable, lineOf) {
  const place = machinePostgres.find();
  if (!place) throw new Trouble(`there is no PostgreSQL with a standby. ${machinePostgres.advice}`);
  const conditions = { user: serverUser(), durable };
  /** @param {string} name */
  const folder = (name) => {
    const path = join(home, name);
    mkdirSync(path, { mode: 0o711 });
    const { uid, gid } = conditions.user;
    if (uid !== undefined && gid !== undefined) chownSync(path, uid, gid);
    return path;
  };
  const { url, children } = await machinePostgres.start(place, folder("primary"), conditions);
  const [child] = children;
  if (!child) throw new Trouble("PostgreSQL started without a process");
  const copy = folder("standby");
  const target = ["-D", join(copy, "data"), "--write-recovery-conf", "--checkpoint=fast", "--no-sync"];
  // Debian's own program of this name is a wrapper that chooses among versions.
  const bin = dirname(realpathSync(join(place.bin, "postgres")));
  await prepare(join(bin, "pg_basebackup"), ["-d", await lineOf(url), ...target], conditions.user, copy);
  const port = await freePort();
  const standby = await startPostgres(place, copy, conditions, port);
  return {
    primary: { url, child },
    standby: { url: Object.assign(new URL(url), { port: String(port) }).href, child: standby },
  };
}
