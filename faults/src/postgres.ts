import { type ChildProcess, execFileSync } from "node:child_process";
import { chmodSync, chownSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { mortal, throwAwayFolder } from "@carillon/zookeeper/testing";

/** The parts of scripts/servers/server.mjs and postgres.mjs that are used here, with their types. */
interface Conditions {
  user: { uid?: number; gid?: number };
  durable: boolean;
}
interface Place {
  bin: string;
  version: string;
}
interface Scripts {
  machinePostgres: {
    find(): Place | undefined;
    start(place: Place, folder: string, conditions: Conditions): Promise<{ url: string; children: ChildProcess[] }>;
  };
  startPostgres(place: Place, folder: string, conditions: Conditions, port: number): Promise<ChildProcess>;
}

const scripts = new URL("../../../../scripts/servers/", import.meta.url);

/** The harness's own PostgreSQL on a fixed port, which it can stop and restart. */
export class Postgres {
  readonly url: string;
  readonly version: string;
  readonly #place: Place;
  readonly #folder: string;
  readonly #conditions: Conditions;
  readonly #scripts: Scripts;
  #child: ChildProcess;

  private constructor(
    scripts: Scripts,
    place: Place,
    folder: string,
    conditions: Conditions,
    started: { url: string; child: ChildProcess },
  ) {
    this.#scripts = scripts;
    this.#place = place;
    this.#folder = folder;
    this.#conditions = conditions;
    this.url = started.url;
    this.version = place.version;
    this.#child = started.child;
  }

  static async start(): Promise<Postgres> {
    const loaded = (await import(new URL("postgres.mjs", scripts).href)) as Scripts;
    const { serverUser } = (await import(new URL("server.mjs", scripts).href)) as {
      serverUser: () => Conditions["user"];
    };
    const place = loaded.machinePostgres.find();
    if (!place) throw new Error("there is no PostgreSQL: start this as `npm run prove -- faults`");
    const user = serverUser();
    const home = throwAwayFolder("faults-postgres");
    chmodSync(home, 0o711);
    const folder = join(home, "server");
    mkdirSync(folder, { mode: 0o711 });
    if (user.uid !== undefined && user.gid !== undefined) chownSync(folder, user.uid, user.gid);
    const conditions = { user, durable: false };
    const { url, children } = await loaded.machinePostgres.start(place, folder, conditions);
    const child = mortal(children[0] as ChildProcess);
    return new Postgres(loaded, place, folder, conditions, { url, child });
  }

  get running(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Shuts the server down immediately (SIGQUIT). At the next start it recovers all committed data from its log. */
  async crash(): Promise<void> {
    await this.#end("SIGQUIT");
  }

  async up(): Promise<void> {
    if (this.running) return;
    const port = Number(new URL(this.url).port);
    this.#child = mortal(await this.#scripts.startPostgres(this.#place, this.#folder, this.#conditions, port));
  }

  async close(): Promise<void> {
    await this.#end("SIGINT");
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    if (!this.running) return;
    const gone = new Promise((resolve) => this.#child.once("exit", resolve));
    this.#child.kill(signal);
    await gone;
  }
}

/** Returns true if this system has the command `prlimit`, which changes the limits of another process. */
export function hasPrlimit(): boolean {
  try {
    execFileSync("prlimit", ["--version"], { stdio: "ignore" });
    return true;
  } catch {
    return false; // This system has no prlimit.
  }
}
