/** Starts a primary and a standby that replicates from it, for tests of a failover. */
import { chownSync, mkdirSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import { Trouble } from "../ready.mjs";
import { machinePostgres, startPostgres } from "./postgres.mjs";
import { freePort, prepare, serverUser } from "./server.mjs";

/** @typedef {{ url: string, child: import("node:child_process").ChildProcess }} One */

/**
 * @param {string} home a folder that the servers' user can pass through
 * @param {boolean} durable whether writes must reach the disk
 * @param {(primary: string) => Promise<string>} lineOf given the primary's URL, resolves with the URL at which the standby reaches it, such
 * as that of a proxy that can delay the replication
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
  // On Debian, the `pg_basebackup` in PATH is a wrapper that chooses a version, so the real folder is used.
  const bin = dirname(realpathSync(join(place.bin, "postgres")));
  await prepare(join(bin, "pg_basebackup"), ["-d", await lineOf(url), ...target], conditions.user, copy);
  const port = await freePort();
  const standby = await startPostgres(place, copy, conditions, port);
  return {
    primary: { url, child },
    standby: { url: Object.assign(new URL(url), { port: String(port) }).href, child: standby },
  };
}
