import type { ChildProcess } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import pg from "pg";

interface One {
  url: string;
  child: ChildProcess;
}

/** The interface of scripts/servers/standby.mjs. */
interface StandbyScripts {
  startPair(
    home: string,
    durable: boolean,
    lineOf: (primary: string) => Promise<string>,
  ): Promise<{ primary: One; standby: One }>;
}
const patienceMs = 30_000;

export const standbyScripts = async (): Promise<StandbyScripts> =>
  import(new URL("../../../scripts/servers/standby.mjs", import.meta.url).href);

/**
 * Starts a PostgreSQL and a standby, both with fsync on, where a commit is answered only when the standby has it on its disk too.
 * @returns the primary's URL, and a function that ends both
 */
export async function synchronousPair(): Promise<{ url: string; close(): void }> {
  const { startPair } = await standbyScripts();
  const home = mkdtempSync(join(tmpdir(), "carillon-bench-pair-"));
  chmodSync(home, 0o711);
  const { primary, standby } = await startPair(home, true, async (url) => url);
  const close = () => {
    process.off("exit", close);
    for (const { child } of [primary, standby]) child.kill("SIGKILL");
    rmSync(home, { recursive: true, force: true });
  };
  process.on("exit", close);
  const client = new pg.Client({ connectionString: primary.url });
  await client.connect();
  try {
    await client.query("alter system set synchronous_standby_names = '*'");
    await client.query("select pg_reload_conf()");
    const deadline = performance.now() + patienceMs;
    for (;;) {
      const { rows } = await client.query("select 1 from pg_stat_replication where sync_state = 'sync'");
      if (rows.length === 1) return { url: primary.url, close };
      if (performance.now() > deadline) throw new Error("the standby did not become synchronous");
      await pause(100);
    }
  } finally {
    await client.end();
  }
}
