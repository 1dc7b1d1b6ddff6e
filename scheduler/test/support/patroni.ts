import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { mortal, throwAwayFolder } from "@carillon/zookeeper/testing";
import pg from "pg";
import { StoreProxy } from "./proxy.ts";
import { until } from "./store-stage.ts";

interface Scripts {
  machinePostgres: { find(): { bin: string } | undefined };
  serverUser(): { uid?: number; gid?: number };
  freePort(): Promise<number>;
}

const scripts = new URL("../../../scripts/servers/", import.meta.url);
/**
 * Time in seconds after which Patroni replaces a lost leader. The tests' ZooKeeper has ticks that are short enough for this. The
 * time must be shorter than the session timeout of the nodes: if a session ended during the failover, its runs would be taken
 * back and run again.
 */
const ttlS = 6;
const slowMs = 180_000;

/** One PostgreSQL with its Patroni. The other members replicate from it through `line`, which a test can delay. */
export class PatroniMember {
  readonly name: string;
  readonly port: number;
  readonly api: string;
  readonly line: StoreProxy;
  readonly #folder: string;
  readonly #child: ChildProcess;

  constructor(given: {
    name: string;
    port: number;
    api: string;
    line: StoreProxy;
    folder: string;
    child: ChildProcess;
  }) {
    this.name = given.name;
    this.port = given.port;
    this.api = given.api;
    this.line = given.line;
    this.#folder = given.folder;
    this.#child = given.child;
  }

  /** True if the member's Patroni answers a request for this role with status 200. */
  async is(what: "primary" | "replica" | "synchronous"): Promise<boolean> {
    try {
      return (await fetch(`${this.api}/${what}`, { signal: AbortSignal.timeout(1_000) })).status === 200;
    } catch {
      return false; // no answer: the member is down or suspended
    }
  }

  get #pidFile(): string {
    return join(this.#folder, "data/postmaster.pid");
  }

  /** Sends the signal to the member's Patroni, its server and the server's child processes, as if its machine failed or was suspended. */
  signal(signal: "SIGKILL" | "SIGSTOP" | "SIGCONT"): void {
    const [server] = readFileSync(this.#pidFile, "utf8").split("\n");
    const { stdout } = spawnSync("ps", ["-o", "pid=", "--ppid", String(server)], { encoding: "utf8" });
    const all = [Number(server), ...stdout.split("\n").filter(Boolean).map(Number)];
    // The server is killed or suspended before its children, because it would report their end, and is resumed after them.
    this.#child.kill(signal);
    for (const pid of signal === "SIGCONT" ? all.reverse() : all) {
      try {
        process.kill(pid, signal);
      } catch (error) {
        if ((error as { code?: string }).code !== "ESRCH") throw error;
      }
    }
  }

  async close(): Promise<void> {
    await this.line.close();
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const gone = new Promise((resolve) => this.#child.once("exit", resolve));
    // A failed test may have left the processes suspended. They are resumed first, because Patroni waits for the end of its server.
    if (existsSync(this.#pidFile)) this.signal("SIGCONT");
    this.#child.kill("SIGCONT");
    this.#child.kill("SIGTERM");
    await gone;
  }
}

/** Three members that use one ZooKeeper. With the high `maximum_lag_on_failover`, a standby can be promoted even if it lacks much data. */
export class Patroni {
  readonly members: readonly PatroniMember[];

  private constructor(members: PatroniMember[]) {
    this.members = members;
  }

  static async start(): Promise<Patroni> {
    const [program, zookeeper] = ["CARILLON_TEST_PATRONI", "CARILLON_TEST_ZOOKEEPER_URL"].map((name) => {
      const value = process.env[name];
      if (!value) throw new Error(`${name} is not set: run the tests with \`npm test\``);
      return value;
    }) as [string, string];
    const { machinePostgres } = (await import(new URL("postgres.mjs", scripts).href)) as Scripts;
    const { serverUser, freePort } = (await import(new URL("server.mjs", scripts).href)) as Scripts;
    const place = machinePostgres.find();
    if (!place) throw new Error("there is no PostgreSQL: run the tests with `npm test`");
    const bin = dirname(realpathSync(join(place.bin, "postgres")));
    const home = throwAwayFolder("patroni");
    chmodSync(home, 0o711);
    const scope = `t${randomBytes(4).toString("hex")}`;
    const members: PatroniMember[] = [];
    for (const name of ["p1", "p2", "p3"]) {
      const [port, apiPort] = [await freePort(), await freePort()];
      const folder = join(home, name);
      mkdirSync(folder, { mode: 0o700 });
      const line = await StoreProxy.before(`postgres://127.0.0.1:${port}/postgres`);
      const file = join(folder, "patroni.yml");
      const linePort = Number(new URL(line.url).port);
      const hosts = zookeeper.replace(/^\w+:\/\//, "").replace(/\/.*/, "");
      writeFileSync(file, JSON.stringify(config({ scope, name, hosts, port, linePort, apiPort, folder, bin })));
      const user = serverUser();
      if (user.uid !== undefined && user.gid !== undefined)
        for (const path of [folder, file]) chownSync(path, user.uid, user.gid);
      // The file is JSON, which is also valid YAML.
      const child = mortal(spawn(program, [file], { ...user, cwd: folder, stdio: ["ignore", "ignore", "ignore"] }));
      const member = new PatroniMember({ name, port, api: `http://127.0.0.1:${apiPort}`, line, folder, child });
      members.push(member);
      if (name === "p1") await until("p1 leads", () => member.is("primary"), slowMs);
    }
    const cluster = new Patroni(members);
    await until("two replicas stream", async () => (await cluster.those("replica")).length === 2, slowMs);
    return cluster;
  }

  /** A connection URL that names all three members and connects to the one that accepts writes. */
  get url(): string {
    const hosts = this.members.map(({ port }) => `127.0.0.1:${port}`).join(",");
    return `postgres://postgres:p@${hosts}/postgres?target_session_attrs=read-write`;
  }

  async those(what: "primary" | "replica" | "synchronous"): Promise<PatroniMember[]> {
    const are = await Promise.all(this.members.map((member) => member.is(what)));
    return this.members.filter((_, i) => are[i]);
  }

  async leader(): Promise<PatroniMember> {
    let [leader] = await this.those("primary");
    await until(
      "one leads",
      async () => {
        [leader] = await this.those("primary");
        return leader !== undefined;
      },
      slowMs,
    );
    return leader as PatroniMember;
  }

  /** Waits for a new leader. @returns the member that leads in place of `former` */
  async successor(former: PatroniMember): Promise<PatroniMember> {
    let next: PatroniMember | undefined;
    await until(
      `another than ${former.name} leads`,
      async () => {
        next = (await this.those("primary")).find((member) => member !== former);
        return next !== undefined;
      },
      slowMs,
    );
    return next as PatroniMember;
  }

  /** Sends a request to the REST API of the member's Patroni. */
  async ask(member: PatroniMember, method: "POST" | "PATCH", path: string, body: object): Promise<void> {
    const answer = await fetch(`${member.api}/${path}`, {
      method,
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    if (!answer.ok) throw new Error(`Patroni answered ${path} with ${answer.status}: ${await answer.text()}`);
  }

  async close(): Promise<void> {
    await Promise.all(this.members.map((member) => member.close()));
  }
}

/** Executes one statement at a member. @returns the rows */
export async function at(member: PatroniMember, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: `postgres://postgres:p@127.0.0.1:${member.port}/postgres` });
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

interface Given {
  scope: string;
  name: string;
  hosts: string;
  port: number;
  linePort: number;
  apiPort: number;
  folder: string;
  bin: string;
}

const config = ({ scope, name, hosts, port, linePort, apiPort, folder, bin }: Given) => ({
  scope,
  name,
  zookeeper: { hosts: [hosts] },
  restapi: { listen: `127.0.0.1:${apiPort}`, connect_address: `127.0.0.1:${apiPort}` },
  bootstrap: {
    dcs: {
      ttl: ttlS,
      loop_wait: 1,
      retry_timeout: 3,
      maximum_lag_on_failover: 2 ** 30,
      postgresql: {
        use_pg_rewind: true,
        parameters: { wal_level: "replica", max_wal_senders: 6, hot_standby: "on", wal_log_hints: "on", fsync: "off" },
      },
    },
    initdb: [{ encoding: "UTF8" }, { "auth-host": "trust" }, { "auth-local": "trust" }],
    pg_hba: ["host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"],
  },
  postgresql: {
    listen: `127.0.0.1:${port}`,
    connect_address: `127.0.0.1:${linePort}`,
    data_dir: join(folder, "data"),
    bin_dir: bin,
    pgpass: join(folder, "pgpass"),
    authentication: {
      replication: { username: "repl", password: "r" },
      superuser: { username: "postgres", password: "p" },
    },
    parameters: { unix_socket_directories: folder, max_connections: 100 },
  },
});
