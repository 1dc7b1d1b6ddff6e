import type { ChildProcess } from "node:child_process";
import { chmodSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { mortal, throwAwayFolder } from "@carillon/zookeeper/testing";
import { scripts, startOwn } from "./own-postgres.ts";

/** A PostgreSQL whose wall clock can be stepped while it runs, by libfaketime. */
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
    const { faketime, fakedBy } = await scripts("servers/faketime.mjs");
    // The server runs as another user, who must be able to read the file.
    const home = throwAwayFolder("stepped-clock");
    chmodSync(home, 0o755);
    const file = join(home, "clock");
    writeFileSync(file, "+0\n");
    const { url, child } = await startOwn("stepped", fakedBy(obtain(faketime), file));
    return new SteppedStore(url, file, child);
  }

  /** Sets how far the server's clock is ahead of the real time, in seconds. */
  step(seconds: number): void {
    writeFileSync(`${this.#file}.next`, `${seconds < 0 ? "" : "+"}${seconds}\n`);
    renameSync(`${this.#file}.next`, this.#file);
  }

  async close(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#gone;
  }
}
