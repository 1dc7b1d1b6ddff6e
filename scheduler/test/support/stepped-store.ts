import type { ChildProcess } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { mortal, throwAwayFolder } from "@carillon/zookeeper/testing";

interface Place {
  bin: string;
  version: string;
}
interface Conditions {
  user: { uid?: number; gid?: number };
  durable: boolean;
  env?: Record<string, string>;
}
/** As scripts/servers.mjs and scripts/servers/ have them. */
interface Scripts {
  machinePostgres: {
    find(): Place | undefined;
    start(place: Place, folder: string, conditions: Conditions): Promise<{ url: string; children: ChildProcess[] }>;
  };
  serverUser(): Conditions["user"];
  obtain(kind: unknown): Place;
  faketime: unknown;
  fakedBy(place: Place, file: string): Record<string, string>;
}

const scripts = async (name: string): Promise<Scripts> =>
  (await import(new URL(`../../../scripts/${name}`, import.meta.url).href)) as Scripts;

/** A PostgreSQL of its own, whose wall clock can be stepped while it runs (libfaketime). */
export class SteppedStore {
  readonly url: string;
  readonly #file: string;
  readonly #child: ChildProcess;
  readonly #gone: Promise<void>;

  private constructor(url: string, file: string, child: ChildProcess) {
    this.url = url;
    this.#file = file;
    this.#child = mortal(child);
    this.#gone = new Promise((resolve) => child.once("exit", () => resolve()));
  }

  static async start(): Promise<SteppedStore> {
    const { obtain } = await scripts("servers.mjs");
    const { machinePostgres } = await scripts("servers/postgres.mjs");
    const { serverUser } = await scripts("servers/server.mjs");
    const { faketime, fakedBy } = await scripts("servers/faketime.mjs");
    const library = obtain(faketime);
    const place = machinePostgres.find();
    if (!place) throw new Error("there is no PostgreSQL: run the tests with `npm test`");
    const home = throwAwayFolder("stepped");
    chmodSync(home, 0o755);
    const file = join(home, "clock");
    writeFileSync(file, "+0\n");
    const user = serverUser();
    const folder = join(home, "server");
    mkdirSync(folder, { mode: 0o711 });
    if (user.uid !== undefined && user.gid !== undefined) chownSync(folder, user.uid, user.gid);
    const started = await machinePostgres.start(place, folder, { user, durable: false, env: fakedBy(library, file) });
    return new SteppedStore(started.url, file, started.children[0] as ChildProcess);
  }

  /** From now on the server's clock is off by so many seconds. */
  step(seconds: number): void {
    writeFileSync(`${this.#file}.next`, `${seconds < 0 ? "" : "+"}${seconds}\n`);
    renameSync(`${this.#file}.next`, this.#file);
  }

  async close(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#gone;
  }
}
