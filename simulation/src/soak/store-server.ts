import { type ChildProcess, spawn } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import pg from "pg";

interface User {
  readonly uid?: number;
  readonly gid?: number;
}

/** The interface of scripts/servers/server.mjs. */
interface ServerKind {
  find(): { bin: string; version: string } | undefined;
  start(
    place: unknown,
    folder: string,
    conditions: { user: User; durable: boolean },
  ): Promise<{ url: string; children: ChildProcess[] }>;
}

const scripts = new URL("../../../../../scripts/", import.meta.url);
const patienceMs = 60_000;

/** A PostgreSQL server for the soak test only, with fsync on. It can be killed and started again on the same data. */
export class StoreServer {
  readonly url: string;
  readonly title: string;
  readonly #folder: string;
  readonly #user: User;
  #child: ChildProcess;
  readonly #onExit = () => void this.#child.kill("SIGKILL");

  private constructor(url: string, title: string, folder: string, user: User, child: ChildProcess) {
    this.url = url;
    this.title = title;
    this.#folder = folder;
    this.#user = user;
    this.#child = child;
    process.on("exit", this.#onExit);
  }

  static async start(): Promise<StoreServer> {
    const { kinds } = (await import(new URL("servers.mjs", scripts).href)) as { kinds: Record<string, ServerKind> };
    const { serverUser } = (await import(new URL("servers/server.mjs", scripts).href)) as { serverUser: () => User };
    const kind = kinds.postgres as ServerKind;
    const place = kind.find();
    if (!place) throw new Error("there is no PostgreSQL on this machine");
    const user = serverUser();
    const folder = mkdtempSync(join(tmpdir(), "carillon-soak-"));
    chmodSync(folder, 0o711);
    const home = join(folder, "postgres");
    mkdirSync(home, { mode: 0o711 });
    if (user.uid !== undefined && user.gid !== undefined) chownSync(home, user.uid, user.gid);
    const { url, children } = await kind.start(place, home, { user, durable: true });
    return new StoreServer(url, `PostgreSQL ${place.version}`, folder, user, children[0] as ChildProcess);
  }

  /** Stops the server like `pg_ctl stop -m immediate`: connections end, nothing is written first, and the next start runs recovery. */
  async stopNow(): Promise<void> {
    const gone = new Promise((resolve) => this.#child.once("exit", resolve));
    this.#child.kill("SIGQUIT");
    await gone;
  }

  /** Starts the server again on its data, and resolves when it accepts connections. */
  async startAgain(): Promise<void> {
    const { spawnfile, spawnargs } = this.#child;
    this.#child = spawn(spawnfile, spawnargs.slice(1), { ...this.#user, cwd: this.#folder, stdio: "ignore" });
    const deadline = performance.now() + patienceMs;
    for (;;) {
      const client = new pg.Client({ connectionString: this.url });
      // Without a listener, an error of this connection would end the process. The queries reject anyway if the server stops again.
      client.on("error", () => undefined);
      try {
        await client.connect();
        await client.end();
        return;
      } catch (error) {
        // The server accepts no connection until its recovery has ended.
        if (performance.now() > deadline) throw error;
        await pause(100);
      }
    }
  }

  async close(): Promise<void> {
    process.off("exit", this.#onExit);
    if (this.#child.exitCode === null && this.#child.signalCode === null) await this.stopNow();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
