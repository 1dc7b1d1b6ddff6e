import type { ChildProcess } from "node:child_process";
import { chmodSync, chownSync } from "node:fs";
import { mortal, throwAwayFolder } from "@carillon/zookeeper/testing";

export type PoolMode = "transaction" | "session";

/** The types of what scripts/servers/server.mjs and pgbouncer.mjs export. */
interface User {
  uid?: number;
  gid?: number;
}
interface Servers {
  serverUser(): User;
  freePort(): Promise<number>;
}
interface Start {
  startPgbouncer(
    program: string,
    folder: string,
    user: User,
    options: { target: string; port: number; mode: PoolMode; poolSize: number },
  ): Promise<ChildProcess>;
}

const scripts = new URL("../../../scripts/servers/", import.meta.url);

export interface PgbouncerOptions {
  mode: PoolMode;
  /** Maximum number of connections to PostgreSQL per database; default 20. */
  poolSize?: number;
}

/** A PgBouncer in front of a PostgreSQL, for one test. It ends with the process that started it. */
export class Pgbouncer {
  readonly url: string;
  readonly #start: () => Promise<ChildProcess>;
  /** The running process; undefined once PgBouncer was killed on purpose. */
  #child: ChildProcess | undefined;
  #crashes = 0;

  private constructor(url: string, start: () => Promise<ChildProcess>) {
    this.url = url;
    this.#start = start;
  }

  static async before(target: string, { mode, poolSize = 20 }: PgbouncerOptions): Promise<Pgbouncer> {
    const program = process.env.CARILLON_TEST_PGBOUNCER;
    if (!program) throw new Error("CARILLON_TEST_PGBOUNCER is not set: run the tests with `npm test`");
    const { startPgbouncer } = (await import(new URL("pgbouncer.mjs", scripts).href)) as Start;
    const { serverUser, freePort } = (await import(new URL("server.mjs", scripts).href)) as Servers;
    const user = serverUser();
    const folder = throwAwayFolder("pgbouncer");
    chmodSync(folder, 0o711);
    if (user.uid !== undefined && user.gid !== undefined) chownSync(folder, user.uid, user.gid);
    const port = await freePort();
    const url = Object.assign(new URL(target), { port: String(port) }).href;
    const pooler = new Pgbouncer(url, () => startPgbouncer(program, folder, user, { target, port, mode, poolSize }));
    await pooler.up();
    return pooler;
  }

  /** Starts PgBouncer, and restarts it if it crashes, as a supervisor does. */
  async up(): Promise<void> {
    const child = mortal(await this.#start());
    this.#child = child;
    child.once("exit", () => {
      if (this.#child !== child) return;
      this.#crashes++;
      void this.up();
    });
  }

  /** Kills PgBouncer; every connection through it breaks. */
  async kill(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
    child.kill("SIGKILL");
    await gone;
  }

  /**
   * Calls `work`, and again up to three times if it fails and PgBouncer crashed meanwhile. Tests that cancel statements need this, because
   * PgBouncer 1.18, which Debian 12 has, may crash on a cancel request (its issues 801 and 822).
   */
  async besideCrashes(work: () => Promise<void>): Promise<void> {
    for (let left = 3; ; left--) {
      const before = this.#crashes;
      try {
        return await work();
      } catch (error) {
        // The client notices a broken connection before this process notices the end of PgBouncer.
        await new Promise((resolve) => setTimeout(resolve, 500));
        if (this.#crashes === before || left === 0) throw error;
      }
    }
  }
}
