import type { ChildProcess } from "node:child_process";
import { chmodSync } from "node:fs";
import { mortal, throwAwayFolder } from "@carillon/zookeeper/testing";
import pg from "pg";
import { StoreProxy } from "./proxy.ts";

/** What scripts/servers/standby.mjs exports. */
interface Scripts {
  startPair(
    home: string,
    durable: boolean,
    lineOf: (primary: string) => Promise<string>,
  ): Promise<{ primary: Started; standby: Started }>;
}
interface Started {
  url: string;
  child: ChildProcess;
}

const scripts = new URL("../../../scripts/servers/", import.meta.url);

/** One of the two servers of a `StandbyPair`. */
export interface Member {
  readonly url: string;
  readonly port: number;
  /** Kills the server with all its processes, as if its machine failed. */
  kill(): Promise<void>;
}

/**
 * A primary and a standby that replicates from it through a proxy. While the proxy is stalled, the standby falls behind; if it is promoted
 * then, it lacks the last commits of the primary.
 */
export class StandbyPair {
  readonly primary: Member;
  readonly standby: Member;
  /** The proxy between the standby and the primary. */
  readonly line: StoreProxy;

  private constructor(primary: Member, standby: Member, line: StoreProxy) {
    this.primary = primary;
    this.standby = standby;
    this.line = line;
  }

  static async start(): Promise<StandbyPair> {
    const { startPair } = (await import(new URL("standby.mjs", scripts).href)) as Scripts;
    const home = throwAwayFolder("standby");
    chmodSync(home, 0o711);
    let line: StoreProxy | undefined;
    const { primary, standby } = await startPair(home, false, async (url) => {
      line = await StoreProxy.before(url);
      return line.url;
    });
    return new StandbyPair(member(primary), member(standby), line as StoreProxy);
  }

  /** A URL that names both servers, the primary first. */
  get url(): string {
    return this.primary.url.replace(`:${this.primary.port}/`, `:${this.primary.port},127.0.0.1:${this.standby.port}/`);
  }

  /** Resolves once the standby has replayed everything that the primary has committed so far. */
  async caughtUp(): Promise<void> {
    const [{ at }] = (await sql(this.primary, "select pg_current_wal_lsn()::text as at")) as [{ at: string }];
    for (;;) {
      const rows = await sql(this.standby, "select pg_last_wal_replay_lsn() >= $1::pg_lsn as there", [at]);
      if (rows[0]?.there === true) return;
    }
  }

  /** Promotes the standby, and resolves when it accepts writes. */
  async promote(): Promise<void> {
    await sql(this.standby, "select pg_promote(wait => true)");
  }

  async close(): Promise<void> {
    await this.line.close();
    await Promise.all([this.primary.kill(), this.standby.kill()]);
  }
}

function member({ url, child: started }: Started): Member {
  const child = mortal(started);
  const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  return {
    url,
    port: Number(new URL(url).port),
    kill: async () => {
      // The child processes of the server end by themselves when the server is killed.
      if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
      await gone;
    },
  };
}

/** Executes one statement on a new connection. @returns the rows */
export async function sql(
  at: Pick<Member, "url">,
  text: string,
  values: unknown[] = [],
): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: at.url });
  await client.connect();
  try {
    return (await client.query(text, values)).rows;
  } finally {
    await client.end();
  }
}
