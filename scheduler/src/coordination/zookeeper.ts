/**
 * ZooKeeper as a witness. Under the cluster's path:
 *
 *   service               {"cluster": …, "service": …}: whose path this is
 *   members/<session>     ephemeral: who is shown
 *   leader/_c_…-latch-…   the line of those who want to lead
 *
 * Only scheduler nodes watch, one recursive watch each; a worker that comes or goes costs no request.
 */
import { randomUUID } from "node:crypto";
import {
  ChildrenCache,
  type ConnectOptions,
  connect,
  isZooKeeperError,
  LeaderLatch,
  type Session,
  type ZooKeeper,
  type ZooKeeperError,
} from "@carillon/zookeeper";
import type { Clock } from "../clock.ts";
import { pause } from "../clock.ts";
import { CarillonError, messageOf } from "../errors.ts";
import { type Shown, type Witness, type WitnessOptions, withoutCredentials } from "../witness.ts";

const retryMs = 250;
const members = "/members";
const service = "/service";

type Told = (what: "first" | "sure" | "members") => void;

/**
 * @param options.url zookeeper://[user:password@]host:port,host:port/path; zookeepers:// for TLS
 * @throws COORDINATION_UNREACHABLE, COORDINATION_REFUSED, COORDINATION_FOREIGN, COORDINATION_UNSUPPORTED
 */
export async function openZooKeeper(options: WitnessOptions & { clock: Clock }): Promise<Witness> {
  const { servers, auth, secure } = parseUrl(options.url);
  const zk = await connect(servers, {
    sessionTimeoutMs: options.sessionTimeoutMs,
    connectTimeoutMs: Math.max(5_000, options.sessionTimeoutMs),
    signal: options.signal,
    auth,
    tls: secure ? {} : undefined,
    log: options.log,
  }).catch((error: unknown) => {
    throw translated(error, options.url);
  });
  try {
    const serviceId = await claimPath(zk, options).catch(async (error) => {
      if (!isZooKeeperError(error, "NO_NODE")) throw error;
      await makeRoot(servers, { auth, tls: secure ? {} : undefined, signal: options.signal });
      return claimPath(zk, options);
    });
    return new ZooKeeperWitness(zk, options, serviceId);
  } catch (error) {
    await zk.close();
    throw translated(error, options.url);
  }
}

function parseUrl(url: string) {
  const [, scheme = "", credentials, servers = ""] = /^(zookeepers?):\/\/(?:([^@/]*)@)?(.+)$/.exec(url) ?? [];
  const path = servers.includes("/") ? servers : `${servers}/carillon`;
  return {
    servers: path.endsWith("/") ? `${path}carillon` : path,
    auth: credentials ? [{ scheme: "digest", credentials: decodeURIComponent(credentials) }] : [],
    secure: scheme === "zookeepers",
  };
}

function translated(error: unknown, url: string): unknown {
  if (!isZooKeeperError(error)) return error;
  const where = withoutCredentials(url);
  const about = (code: ConstructorParameters<typeof CarillonError>[0], what: string, hint: string) =>
    new CarillonError(code, `${where}: ${what}: ${error.message}`, { hint, cause: error });
  if (error.code === "AUTH_FAILED" || error.code === "NO_AUTH")
    return about("COORDINATION_REFUSED", "no permission", "Give user:password@ in the URL, or change the path's ACL.");
  if (error.code === "UNIMPLEMENTED")
    return about("COORDINATION_UNSUPPORTED", "the server is too old", "ZooKeeper 3.6 or newer is needed.");
  if (error.code === "CONNECT_STRING_INVALID" || error.code === "PATH_INVALID")
    return about("OPTION_INVALID", "not an address", "For example zookeeper://zk1:2181,zk2:2181/carillon.");
  if (error.code === "UNREACHABLE")
    return about(
      "COORDINATION_UNREACHABLE",
      "no answer",
      "Check that the servers run, have a quorum and can be reached.",
    );
  return error;
}

/** Whose path this is, without making anything there. @returns undefined: nobody's yet @throws COORDINATION_… */
export async function lookAtZooKeeper(
  url: string,
  signal?: AbortSignal,
): Promise<{ clusterId: string; serviceId: string } | undefined> {
  const { servers, auth, secure } = parseUrl(url);
  const options: ConnectOptions = { connectTimeoutMs: 5_000, auth, tls: secure ? {} : undefined, signal };
  const zk = await connect(servers, options).catch((error: unknown) => {
    throw translated(error, url);
  });
  try {
    const { data } = await zk.get(service);
    const found = parsed(data.toString("utf8"));
    if (typeof found?.cluster === "string" && typeof found.service === "string")
      return { clusterId: found.cluster, serviceId: found.service };
    throw foreign(url, found);
  } catch (error) {
    if (isZooKeeperError(error, "NO_NODE")) return undefined;
    throw translated(error, url);
  } finally {
    await zk.close();
  }
}

/** Makes the path ours, or finds that it is. @returns the service's id, by which another ZooKeeper is told apart */
async function claimPath(
  zk: ZooKeeper,
  { clusterId, url }: WitnessOptions,
  known: string = randomUUID(),
): Promise<string> {
  await createOnce(zk, members, "");
  await createOnce(zk, service, JSON.stringify({ cluster: clusterId, service: known }));
  const { data } = await zk.get(service);
  const found = parsed(data.toString("utf8"));
  if (found?.cluster === clusterId && typeof found.service === "string") return found.service;
  throw foreign(url, found);
}

function foreign(url: string, found: { cluster?: unknown } | undefined): CarillonError {
  const where = withoutCredentials(url);
  return new CarillonError(
    "COORDINATION_FOREIGN",
    found
      ? `${where} belongs to another cluster, ${found.cluster}`
      : `${where}${service} holds what Carillon did not write`,
    { hint: "Give this cluster a path of its own: zookeeper://host:2181/another-path." },
  );
}

function parsed(text: string): { cluster?: unknown; service?: unknown } | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && "cluster" in value ? value : undefined;
  } catch {
    return undefined; // not JSON, so not ours: the caller says so
  }
}

async function createOnce(zk: ZooKeeper, path: string, data: string): Promise<void> {
  try {
    await zk.create(path, data);
  } catch (error) {
    if (isZooKeeperError(error, "NODE_EXISTS")) return;
    if (isZooKeeperError(error, "CONNECTION_LOSS")) return createOnce(zk, path, data);
    throw error;
  }
}

/** The cluster's path itself, through a client whose root is above it. */
async function makeRoot(servers: string, options: ConnectOptions): Promise<void> {
  const slash = servers.indexOf("/");
  const names = servers.slice(slash + 1).split("/");
  const zk = await connect(servers.slice(0, slash), options);
  try {
    for (let depth = 1; depth <= names.length; depth++) await createOnce(zk, `/${names.slice(0, depth).join("/")}`, "");
  } finally {
    await zk.close();
  }
}

class ZooKeeperWitness implements Witness {
  readonly title = "ZooKeeper";
  readonly serviceId: string;
  readonly #zk: ZooKeeper;
  readonly #options: WitnessOptions & { clock: Clock };
  readonly #left = new AbortController();
  readonly #listeners: Told[] = [];
  #announced: Shown | undefined;
  #wake: () => void = () => undefined;
  #showing: Promise<void> | undefined;
  /** In which session which member is shown. */
  #shown: { session: Session; sessionId: number } | undefined;
  #cache: ChildrenCache | undefined;
  #latch: LeaderLatch | undefined;

  constructor(zk: ZooKeeper, options: WitnessOptions & { clock: Clock }, serviceId: string) {
    this.#zk = zk;
    this.#options = options;
    this.serviceId = serviceId;
  }

  announce(shown: Shown): void {
    this.#announced = shown;
    this.#showing ??= this.#show();
    this.#wake();
  }

  shownUntil(): number {
    const shown = this.#shown;
    if (!shown || shown.sessionId !== this.#announced?.sessionId || !shown.session.live) return 0;
    return this.#options.clock.monotonic() + shown.session.remainingMs;
  }

  sure(): boolean {
    return this.#shown?.session.state === "connected" && this.shownUntil() > 0;
  }

  async gone(sessionIds: readonly number[]): Promise<number[]> {
    // The server asked may lag behind the others: first it has to catch up.
    const session = this.#zk.session;
    await session.sync(members);
    const there = await Promise.all(sessionIds.map((id) => session.exists(`${members}/${id}`)));
    return sessionIds.filter((_, index) => there[index] === undefined);
  }

  shown(): ReadonlyMap<number, Shown> {
    const found = new Map<number, Shown>();
    for (const name of this.#cache?.names ?? []) {
      const shown = parsedMember(this.#cache?.get(name)?.data);
      if (shown) found.set(shown.sessionId, shown);
    }
    return found;
  }

  contend(): void {
    if (this.#latch || this.#left.signal.aborted) return;
    if (!this.#cache) {
      this.#cache = new ChildrenCache(this.#zk, members);
      this.#cache.ready.catch((error) => this.#trouble(error));
      this.#cache.listen({ event: () => this.#tell("members"), trouble: (error) => this.#trouble(error) });
    }
    const latch = new LeaderLatch(this.#zk, "/leader", { id: this.#announced?.node ?? "" });
    latch.listen({
      isLeader: () => this.#tell("first"),
      notLeader: () => this.#tell("first"),
      trouble: (error) => this.#trouble(error),
    });
    this.#latch = latch;
    latch.start().catch((error) => {
      this.#trouble(error);
      if (this.#latch === latch) this.#latch = undefined; // the next beat contends again
    });
  }

  async stepDown(): Promise<void> {
    const latch = this.#latch;
    this.#latch = undefined;
    await latch?.close().catch((error) => this.#trouble(error));
    if (latch) this.#tell("first");
  }

  first(): boolean {
    return this.#latch?.hasLeadership ?? false;
  }

  onChange(listener: Told): void {
    this.#listeners.push(listener);
  }

  async leave(): Promise<void> {
    this.#left.abort();
    this.#wake();
    await this.stepDown();
    await this.#cache?.close();
    await this.#zk.close();
    await this.#showing;
  }

  /** Keeps the announced member shown, from session to session. */
  async #show(): Promise<void> {
    const { clock } = this.#options;
    while (!this.#left.signal.aborted) {
      const woken = new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      try {
        const session = await this.#zk.established(this.#left.signal);
        if (this.#shown?.session !== session || this.#shown.sessionId !== this.#announced?.sessionId)
          await this.#showIn(session);
        await woken;
      } catch (error) {
        if (this.#left.signal.aborted || this.#zk.signal.aborted) return;
        this.#trouble(error);
        await pause(clock, retryMs, this.#left.signal);
      }
    }
  }

  async #showIn(session: Session): Promise<void> {
    const member = this.#announced as Shown;
    const before = this.#shown;
    this.#shown = undefined;
    if (before?.session === session) await this.#remove(session, before.sessionId);
    await claimPath(this.#zk, this.#options, this.serviceId);
    const path = `${members}/${member.sessionId}`;
    for (;;) {
      try {
        await session.create(path, JSON.stringify(member), { ephemeral: true });
        break;
      } catch (error) {
        if (!isZooKeeperError(error, "NODE_EXISTS", "CONNECTION_LOSS")) throw error;
        const there = await session.exists(path);
        if (there?.ephemeralOwner === session.id) break;
        // Our own, of a session that has ended: it is about to go, and must not be taken for this one's.
        if (there) await this.#remove(session, member.sessionId);
      }
    }
    this.#shown = { session, sessionId: member.sessionId };
    const stop = session.onState((state) => {
      if (state === "ended") {
        stop();
        this.#wake();
      }
      this.#tell("sure");
    });
    this.#watchOwn(session, path);
    this.#tell("sure");
  }

  /** Someone may delete our node, or wipe the service under a session that lives on: then we are not shown. */
  #watchOwn(session: Session, path: string): void {
    const lost = () => {
      if (this.#shown?.session !== session || !path.endsWith(`/${this.#shown.sessionId}`)) return;
      this.#shown = undefined;
      this.#wake();
      this.#tell("sure");
    };
    const look = (): void => {
      session
        .exists(path, {
          watch: (event) => (event.type === "deleted" ? lost() : event.type === "ended" ? undefined : look()),
        })
        .then((stat) => stat?.ephemeralOwner === session.id || lost())
        .catch(() => undefined); // the session has ended, which its own listener tells
    };
    look();
  }

  async #remove(session: Session, sessionId: number): Promise<void> {
    try {
      await session.delete(`${members}/${sessionId}`);
    } catch (error) {
      if (!isZooKeeperError(error, "NO_NODE")) throw error;
    }
  }

  #tell(what: Parameters<Told>[0]): void {
    for (const listener of this.#listeners) listener(what);
  }

  #trouble(error: unknown): void {
    if (!this.#left.signal.aborted) this.#options.log(`ZooKeeper: ${messageOf(error as ZooKeeperError)}`);
  }
}

function parsedMember(data: Buffer | undefined): Shown | undefined {
  try {
    const value: unknown = JSON.parse(data?.toString("utf8") ?? "");
    return typeof value === "object" && value !== null && "sessionId" in value ? (value as Shown) : undefined;
  } catch {
    return undefined; // foreign data under our path: it shows nobody, and `gone` asks for the path alone
  }
}
