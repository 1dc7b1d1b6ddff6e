import type { ChildProcess } from "node:child_process";
import { appendFileSync, cpSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { mortal, mortalPid } from "@carillon/zookeeper/testing";
import { type OwnPostgres, type Scripts, scripts, startOwn } from "./own-postgres.ts";
import { sql } from "./standby.ts";

/** A PostgreSQL that can crash, or be restored from a base backup as in a point-in-time recovery, and comes back at the same address. */
export class RestorableStore {
  readonly url: string;
  readonly #parts: Pick<Scripts, "startPostgres" | "prepare">;
  readonly #server: OwnPostgres;
  #child: ChildProcess;
  readonly #held = new Map<number, () => void>();

  private constructor(parts: Pick<Scripts, "startPostgres" | "prepare">, server: OwnPostgres) {
    this.url = server.url;
    this.#parts = parts;
    this.#server = server;
    this.#child = mortal(server.child);
  }

  static async start(): Promise<RestorableStore> {
    const { startPostgres } = await scripts("servers/postgres.mjs");
    const { prepare } = await scripts("servers/server.mjs");
    return new RestorableStore({ startPostgres, prepare }, await startOwn("restorable"));
  }

  /** Takes a base backup, which replaces the previous one. */
  async backUp(): Promise<void> {
    rmSync(this.#backup, { recursive: true, force: true });
    const { place, folder, conditions } = this.#server;
    // On Debian, the `pg_basebackup` in PATH is a wrapper that chooses a version, so the real folder is used.
    const bin = dirname(realpathSync(join(place.bin, "postgres")));
    const args = ["-d", this.url, "-D", this.#backup, "--checkpoint=fast", "--no-sync"];
    await this.#parts.prepare(join(bin, "pg_basebackup"), args, conditions.user, folder);
  }

  /** Stops the server, replaces its data by the backup, and starts it again; its write-ahead log then begins a new timeline. */
  async restore(): Promise<void> {
    await this.close();
    const { folder, conditions } = this.#server;
    const data = join(folder, "data");
    rmSync(data, { recursive: true });
    cpSync(this.#backup, data, { recursive: true, preserveTimestamps: true });
    // There is no archive, so recovery ends with the log in the backup. Until then the server refuses clients, which could only read.
    appendFileSync(join(data, "postgresql.auto.conf"), "restore_command = 'false'\nhot_standby = off\n");
    writeFileSync(join(data, "recovery.signal"), "");
    const { uid, gid } = conditions.user;
    if (uid !== undefined && gid !== undefined)
      await this.#parts.prepare("chown", ["-R", `${uid}:${gid}`, data], {}, "/");
    await this.#startAgain();
  }

  /**
   * Suspends the server's processes that write its log by themselves, until the server stops. From then on only a commit that waits for
   * the disk writes the log, however busy the machine is.
   */
  async holdLog(): Promise<void> {
    const rows = await sql(
      this,
      "select pid from pg_stat_activity where backend_type in ('walwriter', 'background writer')",
    );
    for (const { pid } of rows as { pid: number }[]) {
      if (!this.#held.has(pid)) this.#held.set(pid, mortalPid(pid));
      process.kill(pid, "SIGSTOP");
    }
  }

  /** Kills the suspended processes, because they would not stop with the server. */
  endHeld(): void {
    for (const [pid, ended] of this.#held) {
      process.kill(pid, "SIGKILL");
      ended();
    }
    this.#held.clear();
  }

  /** Stops the server without a checkpoint, so that it loses what is not on disk, and starts it again. */
  async crash(whileDown: () => Promise<void> = async () => undefined): Promise<void> {
    await this.close();
    await whileDown();
    await this.#startAgain();
  }

  async #startAgain(): Promise<void> {
    const { place, folder, conditions } = this.#server;
    const port = Number(new URL(this.url).port);
    this.#child = mortal(await this.#parts.startPostgres(place, folder, conditions, port));
  }

  async close(): Promise<void> {
    const child = this.#child;
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
    child.kill("SIGQUIT");
    this.endHeld();
    await gone;
  }

  get #backup(): string {
    return join(this.#server.folder, "backup");
  }
}
