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
  /** 1 (the default) is a standalone server. */
  readonly servers?: 1 | 3 | 5;
  /** Milliseconds; a session timeout is at least two ticks, and sessions expire on whole ticks. Default 200. */
  readonly tickTime?: number;
  /** A secure port besides the plain one; `want` and `none` let in clients without a certificate. */
  readonly tls?: boolean | { readonly clientAuth: "need" | "want" | "none" };
  /** DIGEST-MD5: users (letters and digits) and passwords; with `required`, a client without a login may do nothing. */
  readonly sasl?: { readonly users: Readonly<Record<string, string>>; readonly required?: boolean };
  /** Lets `addAuth("digest", "super:PASSWORD")` past every ACL. */
  readonly superPassword?: string;
  /** Bytes: the server's limit for a request. */
  readonly juteMaxBuffer?: number;
  /** The server's memory, as Java's -Xmx has it. Default 256m. */
  readonly heap?: string;
  /** More lines of zoo.cfg, e.g. `{ extendedTypesEnabled: false }`; they win. */
  readonly config?: Readonly<Record<string, string | number | boolean>>;
  /** More of Java's system properties; they win. */
  readonly properties?: Readonly<Record<string, string | number>>;
  /** Puts a proxy before each server, so that `server.partition()` can cut it off from its clients. */
  readonly partitions?: boolean;
  /**
   * The program. Default: that in the folder CARILLON_TEST_ZOOKEEPER_JAVA, else of JAVA_HOME, PATH, or where Debian or
   * Homebrew put it.
   */
  readonly java?: string;
  /** The server's jars, as Java's -cp has them. Default: CARILLON_TEST_ZOOKEEPER_CLASSPATH, else ZOOKEEPER_HOME, Debian's, Homebrew's. */
  readonly jars?: string;
}

/** Java is looked up once for each process. */
let found: { readonly java: string | undefined; readonly jars: string | undefined } | undefined;

/** @throws when there is no Java or no ZooKeeper */
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
 * A standalone server or an ensemble of a test's own, on loopback and in a throw-away folder. Close it with `stop` or
 * `await using`; at the latest it goes when the test process is gone, however that ends.
 */
export class Ensemble {
  readonly servers: readonly ZooKeeperServer[];
  /** Set when the ensemble was started with TLS. */
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

  /** Resolves once every server serves. */
  static async start(options: EnsembleOptions = {}): Promise<Ensemble> {
    for (let attempt = 1; ; attempt++) {
      const ensemble = await Ensemble.#plan(options);
      try {
        await ensemble.startAll();
        return ensemble;
      } catch (error) {
        await ensemble.stop();
        // Another process may take a port between our finding it free and the server's listening on it.
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
      forceSync: "no", // a killed process loses nothing that the system has
      preAllocSize: 1_024, // KB for a log file instead of 64 MB
      "admin.enableServer": false,
      "4lw.commands.whitelist": "*",
      ...(options.tls ? serverTls(folder, typeof options.tls === "object" ? options.tls.clientAuth : "need") : {}),
      ...(options.sasl ? saslConfig(options.sasl.required ?? false) : {}),
    };
    if (count > 1) {
      config.initLimit = Math.ceil(8_000 / tickTime);
      config.syncLimit = Math.ceil(2_000 / tickTime);
      for (let id = 1; id <= count; id++) {
        // A configuration that can be changed names the ports for clients too; zoo.cfg names each server's own as well.
        const client = options.config?.reconfigEnabled ? `;127.0.0.1:${ports[id - 1]}` : "";
        config[`server.${id}`] = `127.0.0.1:${await freePort()}:${await freePort()}${client}`;
      }
    }
    const properties: Record<string, string | number> = {
      "znode.container.checkIntervalMs": 1_000,
      // 3.8.0 does not keep all that a server gets as a difference when it joins: after the next restart its clients saw nodes
      // deleted long ago, and waited behind them for as long as it ran (ZOOKEEPER-3023, -4394). Nor does its leader always
      // understand the answer to one (ZOOKEEPER-4685), and then waits for initLimit in vain. So every server gets it all.
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

  /** `host:port,host:port,…` of the servers, with a chroot if one is given. */
  connectString(chroot = ""): string {
    return this.servers.map(({ address }) => address).join(",") + chroot;
  }

  /** The same of the TLS ports; by name, so that the certificate is checked against it. */
  secureConnectString(chroot = ""): string {
    return this.servers.map(({ securePort }) => `localhost:${securePort}`).join(",") + chroot;
  }

  /** System properties with which a Java client logs in by SASL as that user. */
  javaLogin(user: string): Readonly<Record<string, string>> {
    const password = this.#users[user];
    if (password === undefined) throw new Error(`the ensemble has no SASL user ${user}`);
    return clientLogin(this.#folder, user, password);
  }

  /** The one server of a standalone ensemble, or the first. */
  get server(): ZooKeeperServer {
    const [first] = this.servers;
    if (!first) throw new Error("an ensemble has at least one server");
    return first;
  }

  /** The server that leads now; waits up to a minute for one. */
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

  /** Waits until every server that is alive and not frozen serves. */
  async ready(): Promise<void> {
    await Promise.all(this.servers.filter(({ alive, frozen }) => alive && !frozen).map((server) => server.ready()));
  }

  /** Starts those that do not run and waits until all serve. */
  async startAll(): Promise<void> {
    for (const server of this.servers) if (!server.alive) server.spawn();
    await this.ready();
  }

  /** kill -9 of every server. */
  async killAll(): Promise<void> {
    await Promise.all(this.servers.map((server) => server.kill()));
  }

  /** Kills all, forgets everything stored, and starts again on the same ports. */
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
