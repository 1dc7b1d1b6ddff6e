import type { ChildProcess } from "node:child_process";
import { appendFileSync, chmodSync, chownSync, cpSync, mkdirSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { mortal, throwAwayFolder } from "@carillon/zookeeper/testing";

interface Place {
  bin: string;
  version: string;
}
type User = { uid?: number; gid?: number };
interface Conditions {
  user: User;
  durable: boolean;
}
/** As scripts/servers/ has them. */
interface Scripts {
  machinePostgres: {
    find(): Place | undefined;
    start(place: Place, folder: string, conditions: Conditions): Promise<{ url: string; children: ChildProcess[] }>;
  };
  startPostgres(place: Place, folder: string, conditions: Conditions, port: number): Promise<ChildProcess>;
  prepare(program: string, args: string[], user: User, cwd: string): Promise<void>;
  serverUser(): User;
}

const scripts = async (name: string): Promise<Scripts> =>
  (await import(new URL(`../../../scripts/servers/${name}`, import.meta.url).href)) as Scripts;

/** A PostgreSQL of its own that can be taken back to a base backup, at the same address, as by a point-in-time recovery. */
export class RestorableStore {
  readonly url: string;
  readonly #parts: Pick<Scripts, "startPostgres" | "prepare">;
  readonly #place: Place;
  readonly #folder: string;
  readonly #conditions: Conditions;
  #child: ChildProcess;

  private constructor(
    url: string,
    made: { parts: Pick<Scripts, "startPostgres" | "prepare">; place: Place; folder: string; conditions: Conditions },
    child: ChildProcess,
  ) {
    this.url = url;
    this.#parts = made.parts;
    this.#place = made.place;
    this.#folder = made.folder;
    this.#conditions = made.conditions;
    this.#child = mortal(child);
  }

  static async start(): Promise<RestorableStore> {
    const { machinePostgres, startPostgres } = await scripts("postgres.mjs");
    const { prepare, serverUser } = await scripts("server.mjs");
    const place = machinePostgres.find();
    if (!place) throw new Error("there is no PostgreSQL: run the tests with `npm test`");
    const home = throwAwayFolder("restorable");
    chmodSync(home, 0o711);
    const conditions = { user: serverUser(), durable: false };
    const folder = join(home, "server");
    mkdirSync(folder, { mode: 0o711 });
    const { uid, gid } = conditions.user;
    if (uid !== undefined && gid !== undefined) chownSync(folder, uid, gid);
    const { url, children } = await machinePostgres.start(place, folder, conditions);
    const made = { parts: { startPostgres, prepare }, place, folder, conditions };
    return new RestorableStore(url, made, children[0] as ChildProcess);
  }

  /** Takes a base backup, which replaces the one before. */
  async backUp(): Promise<void> {
    rmSync(this.#backup, { recursive: true, force: true });
    // Debian's own program of this name is a wrapper that chooses among versions.
    const bin = dirname(realpathSync(join(this.#place.bin, "postgres")));
    const args = ["-d", this.url, "-D", this.#backup, "--checkpoint=fast", "--no-sync"];
    await this.#parts.prepare(join(bin, "pg_basebackup"), args, this.#conditions.user, this.#folder);
  }

  /** Ends the server at once, puts the backup in its place, and starts it: its log begins a new timeline. */
  async restore(): Promise<void> {
    await this.close();
    const data = join(this.#folder, "data");
    rmSync(data, { recursive: true });
    cpSync(this.#backup, data, { recursive: true, preserveTimestamps: true });
    // Nothing is archived: recovery ends with the log that is in the backup.
    appendFileSync(join(data, "postgresql.auto.conf"), "restore_command = 'false'\n");
    writeFileSync(join(data, "recovery.signal"), "");
    const { uid, gid } = this.#conditions.user;
    if (uid !== undefined && gid !== undefined)
      await this.#parts.prepare("chown", ["-R", `${uid}:${gid}`, data], {}, "/");
    const port = Number(new URL(this.url).port);
    this.#child = mortal(await this.#parts.startPostgres(this.#place, this.#folder, this.#conditions, port));
  }

  async close(): Promise<void> {
    const child = this.#child;
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
    child.kill("SIGQUIT");
    await gone;
  }

  get #backup(): string {
    return join(this.#folder, "backup");
  }
}
