import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { throwAwayFolder } from "./afterlife.ts";
import { findJars, findJava } from "./find.mjs";
import { freePort } from "./ports.ts";
import { type ClientTls, clientLogin, saslConfig, serverLogins, serverTls, superUser, writeTls } from "./security.ts";
import { ZooKeeperServer } from "./server.ts";
import { TcpProxy } from "./tcp-proxy.ts";

export interface EnsembleOptions {
  /** Number of servers. Default 1, a standalone server. */
  readonly servers?: 1 | 3 | 5;
  /** ZooKeeper's tick in ms. A session timeout is at least two ticks, and sessions expire at whole ticks. Default 200. */
  readonly tickTime?: number;
  /** Opens a TLS port besides the plain one. With `want` or `none`, clients without a certificate are accepted. */
  readonly tls?: boolean | { readonly clientAuth: "need" | "want" | "none" };
  /** Users (letters and digits) and passwords for DIGEST-MD5 logins. With `required`, the servers refuse a client without a login. */
  readonly sasl?: { readonly users: Readonly<Record<string, string>>; readonly required?: boolean };
  /** The password with which `addAuth("digest", "super:PASSWORD")` gets all permissions. */
  readonly superPassword?: string;
  /** The servers' limit for a request, in bytes. */
  readonly juteMaxBuffer?: number;
  /** The servers' memory, in the form of Java's -Xmx. Default 256m. */
  readonly heap?: string;
  /** Additional settings of zoo.cfg, such as `{ extendedTypesEnabled: false }`; they override the defaults. */
  readonly config?: Readonly<Record<string, string | number | boolean>>;
  /** Additional Java system properties; they override the defaults. */
  readonly properties?: Readonly<Record<string, string | number>>;
  /** If true, puts a proxy before each server, so that `server.partition()` can cut the server off from its clients. */
  readonly partitions?: boolean;
  /**
   * The path of the Java program. Default: `java` in the folder CARILLON_TEST_ZOOKEEPER_JAVA, otherwise from JAVA_HOME, PATH, or the paths
   * of Debian or Homebrew.
   */
  readonly java?: string;
  /** The servers' jars as a Java class path. Default: CARILLON_TEST_ZOOKEEPER_CLASSPATH, or from ZOOKEEPER_HOME, Debian or Homebrew. */
  readonly jars?: string;
}

/** The programs that were found; they are searched for once per process. */
let found: { readonly java: string | undefined; readonly jars: string | undefined } | undefined;

/** Returns the paths of Java and of the jars. @throws if Java or ZooKeeper is missing */
function programs(options: EnsembleOptions): { java: string; jars: string } {
  if (options.java === undefined || options.jars === undefined) {
    const bin = found ? undefined : findJava("java");
    found ??= { java: bin && join(bin, "java"), jars: findJars() };
  }
  const [java, jars] = [options.java ?? found?.java, options.jars ?? found?.jars];
  if (java !== undefined && jars !== undefined) return { java, jars };
  const [what, name] = java === undefined ? ["Java", "java"] : ["ZooKeeper", "jars"];
  throw new Error(
    `${what} was not found: install it (Debian: apt-get install zookeeper default-jre-headless; macOS: brew install zookeeper), ` +
      `or name it with the option \`${name}\``,
  );
}

/**
 * A standalone server or an ensemble for one test, on loopback and in a temporary folder. A test closes it with `stop` or `await using`.
 * If a test does not close it, it is removed when the test process ends, even by a crash.
 */
export class Ensemble {
  readonly servers: readonly ZooKeeperServer[];
  /** The clients' TLS material; undefined if the ensemble was started without TLS. */
  readonly tls: ClientTls | undefined;
  readonly #folder: string;
  readonly #users: Readonly<Record<string, string>>;

  private constructor(
    folder: string,
    servers: readonly ZooKeeperServer[],
    tls: ClientTls | undefined,
    users: Readonly<Record<string, string>>,
  ) {
    this.#folder = folder;
    this.#users = users;
    this.servers = servers;
    this.tls = tls;
  }

  /** Starts an ensemble; resolves once every server serves clients. */
  static async start(options: EnsembleOptions = {}): Promise<Ensemble> {
    for (let attempt = 1; ; attempt++) {
      const ensemble = await Ensemble.#plan(options);
      try {
        await ensemble.startAll();
        return ensemble;
      } catch (error) {
        await ensemble.stop();
        // Another process may take a port between the check that it is free and the start of the server.
        if (attempt === 3 || !/address already in use/i.test(String(error))) throw error;
      }
    }
  }

  static async #plan(options: EnsembleOptions): Promise<Ensemble> {
    const program = programs(options);
    const folder = throwAwayFolder("zookeeper");
    const tickTime = options.tickTime ?? 200;
    const tls = options.tls ? writeTls(folder) : undefined;
    const count = options.servers ?? 1;
    const ports: number[] = [];
    while (ports.length < count) ports.push(await freePort());
    const config: Record<string, string | number | boolean> = {
      tickTime,
      maxSessionTimeout: 60_000,
      maxClientCnxns: 0,
      extendedTypesEnabled: true,
      forceSync: "no", // fsync is not needed, because data written by a killed process stays in the operating system
      preAllocSize: 1_024, // preallocated size of a log file in KB; the default is 64 MB
      "admin.enableServer": false,
      "4lw.commands.whitelist": "*",
      ...(options.tls ? serverTls(folder, typeof options.tls === "object" ? options.tls.clientAuth : "need") : {}),
      ...(options.sasl ? saslConfig(options.sasl.required ?? false) : {}),
    };
    if (count > 1) {
      config.initLimit = Math.ceil(8_000 / tickTime);
      config.syncLimit = Math.ceil(2_000 / tickTime);
      for (let id = 1; id <= count; id++) {
        // If `reconfig` may change the configuration, it must contain the client ports too.
        const client = options.config?.reconfigEnabled ? `;127.0.0.1:${ports[id - 1]}` : "";
        config[`server.${id}`] = `127.0.0.1:${await freePort()}:${await freePort()}${client}`;
      }
    }
    const properties: Record<string, string | number> = {
      "znode.container.checkIntervalMs": 1_000,
      // Version 3.8.0 does not persist all of the transactions (the diff) that a joining server receives. After the server's next restart,
      // its clients may see nodes that were deleted long before (ZOOKEEPER-3023, -4394). The leader also sometimes misreads the answer to a
      // diff (ZOOKEEPER-4685), and then waits for initLimit in vain. Therefore every joining server gets a full snapshot.
      ...(count > 1 ? { "zookeeper.forceSnapshotSync": "true" } : {}),
      ...(options.juteMaxBuffer === undefined ? {} : { "jute.maxbuffer": options.juteMaxBuffer }),
      ...(options.sasl ? serverLogins(folder, options.sasl.users) : {}),
      ...(options.superPassword === undefined ? {} : superUser(options.superPassword)),
      ...options.properties,
    };
    const servers: ZooKeeperServer[] = [];
    for (let id = 1; id <= count; id++) {
      const home = join(folder, String(id));
      mkdirSync(home);
      const port = ports[id - 1] as number;
      servers.push(
        new ZooKeeperServer({
          ...program,
          id,
          folder: home,
          port,
          front: options.partitions ? await TcpProxy.before(`127.0.0.1:${port}`) : undefined,
          securePort: options.tls ? await freePort() : undefined,
          config: { ...config, ...options.config },
          properties,
          heap: options.heap ?? "256m",
        }),
      );
    }
    return new Ensemble(folder, servers, tls, options.sasl?.users ?? {});
  }

  /** Returns the connect string `host:port,host:port,…`, with the chroot if one is given. */
  connectString(chroot = ""): string {
    return this.servers.map(({ address }) => address).join(",") + chroot;
  }

  /** Like `connectString`, for the TLS ports. It contains the name localhost, so that clients check the certificate's host name. */
  secureConnectString(chroot = ""): string {
    return this.servers.map(({ securePort }) => `localhost:${securePort}`).join(",") + chroot;
  }

  /** Returns the system properties with which a Java client logs in by SASL as this user. @throws if the ensemble has no such user */
  javaLogin(user: string): Readonly<Record<string, string>> {
    const password = this.#users[user];
    if (password === undefined) throw new Error(`the ensemble has no SASL user ${user}`);
    return clientLogin(this.#folder, user, password);
  }

  /** The first server, which is the only one of a standalone ensemble. */
  get server(): ZooKeeperServer {
    const [first] = this.servers;
    if (!first) throw new Error("an ensemble has at least one server");
    return first;
  }

  /** Returns the server that leads now, or the standalone server; waits up to a minute. @throws if no server leads by then */
  async leader(): Promise<ZooKeeperServer> {
    const deadline = performance.now() + 60_000;
    while (performance.now() < deadline) {
      const modes = await Promise.all(this.servers.map(async (server) => ({ server, mode: await server.mode() })));
      const leading = modes.find(({ mode }) => mode === "leader" || mode === "standalone");
      if (leading) return leading.server;
      await sleep(30);
    }
    throw new Error(`no server leads after a minute:\n${this.servers.map((server) => server.logEnd()).join("\n")}`);
  }

  async followers(): Promise<readonly ZooKeeperServer[]> {
    const leader = await this.leader();
    return this.servers.filter((server) => server !== leader);
  }

  /** Waits until every server that runs and is not frozen serves clients. */
  async ready(): Promise<void> {
    await Promise.all(this.servers.filter(({ alive, frozen }) => alive && !frozen).map((server) => server.ready()));
  }

  /** Starts the servers that do not run, and waits until all servers that are not frozen serve clients. */
  async startAll(): Promise<void> {
    for (const server of this.servers) if (!server.alive) server.spawn();
    await this.ready();
  }

  /** Kills every server by SIGKILL. */
  async killAll(): Promise<void> {
    await Promise.all(this.servers.map((server) => server.kill()));
  }

  /** Kills all servers, deletes their data, and starts them again on the same ports. */
  async wipeAll(): Promise<void> {
    await this.killAll();
    for (const server of this.servers) server.wipe();
    await this.startAll();
  }

  async stop(): Promise<void> {
    await Promise.all(this.servers.map((server) => server.close()));
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 5 });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }
}
