/** Starts a PostgreSQL for tests that need their own, for example to step its clock or to restore it from a backup. */
import type { ChildProcess } from "node:child_process";
import { chmodSync, chownSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { throwAwayFolder } from "@carillon/zookeeper/testing";

export interface Place {
  bin: string;
  version: string;
}
export type User = { uid?: number; gid?: number };
export interface Conditions {
  user: User;
  durable: boolean;
  env?: Record<string, string>;
}
/** The exports of scripts/servers.mjs and of scripts/servers/ that are used here. */
export interface Scripts {
  machinePostgres: {
    find(): Place | undefined;
    start(place: Place, folder: string, conditions: Conditions): Promise<{ url: string; children: ChildProcess[] }>;
  };
  startPostgres(place: Place, folder: string, conditions: Conditions, port: number): Promise<ChildProcess>;
  prepare(program: string, args: string[], user: User, cwd: string): Promise<void>;
  serverUser(): User;
  obtain(kind: unknown): Place;
  faketime: unknown;
  fakedBy(place: Place, file: string): Record<string, string>;
}

/** Imports a module of the scripts. @param name its path within scripts/ */
export const scripts = async (name: string): Promise<Scripts> =>
  (await import(new URL(`../../../scripts/${name}`, import.meta.url).href)) as Scripts;

export interface OwnPostgres {
  url: string;
  child: ChildProcess;
  place: Place;
  /** The server's folder. It is removed when the test process ends, and the user that runs the server can reach it. */
  folder: string;
  conditions: Conditions;
}

/**
 * Starts a PostgreSQL server.
 * @param title the name of its folder
 * @param env environment variables of the server
 */
export async function startOwn(title: string, env: Record<string, string> = {}): Promise<OwnPostgres> {
  const { machinePostgres } = await scripts("servers/postgres.mjs");
  const { serverUser } = await scripts("servers/server.mjs");
  const place = machinePostgres.find();
  if (!place) throw new Error("there is no PostgreSQL: run the tests with `npm test`");
  const home = throwAwayFolder(title);
  chmodSync(home, 0o755);
  const user = serverUser();
  const folder = join(home, "server");
  mkdirSync(folder, { mode: 0o711 });
  if (user.uid !== undefined && user.gid !== undefined) chownSync(folder, user.uid, user.gid);
  const conditions = { user, durable: false, env };
  const { url, children } = await machinePostgres.start(place, folder, conditions);
  return { url, child: children[0] as ChildProcess, place, folder, conditions };
}
