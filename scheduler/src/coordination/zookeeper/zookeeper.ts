/**
 * ZooKeeper as a coordination service. Nodes under the cluster's path:
 *
 *   service               {"cluster": …, "service": …}: the path's owner
 *   members/<session>     ephemeral: the listed sessions
 *   leader/_c_…-latch-…   the queue of candidates for leadership
 *
 * Only the first in the queue watches the members, by one recursive watch. A member joins or leaves by creating or deleting its
 * own node, of which no process except the first in the queue is notified.
 */
import { connect, isZooKeeperError, LeaderLatch, type Session, type ZooKeeper } from "@carillon/zookeeper";
import type { Clock } from "../../base/clock.ts";
import { pause } from "../../base/clock.ts";
import { CarillonError, messageOf } from "../../base/errors.ts";
import type { LockNeeds, LockPlace } from "../../cluster/locks.ts";
import type { MembershipProvider, MembershipProviderOptions, Shown } from "../../cluster/membership-provider.ts";
import { ZooKeeperLocks } from "./locks.ts";
import { ZooKeeperMembers } from "./members.ts";
import { ClusterPath, members } from "./path.ts";

const retryMs = 250;
type Told = (what: "first" | "sure" | "members") => void;

/**
 * Connects and claims the path.
 * @throws COORDINATION_UNREACHABLE, _REFUSED, _FOREIGN, _UNSUPPORTED, OPTION_INVALID; errors of `nameNew`
 */
export async function openZooKeeper(
  options: MembershipProviderOptions & { clock: Clock },
): Promise<MembershipProvider> {
  const path = new ClusterPath(options.url, options.clusterId);
  let zk: ZooKeeper | undefined;
  try {
    zk = await connect(path.servers, {
      ...path.access,
      sessionTimeoutMs: options.sessionTimeoutMs,
      connectTimeoutMs: Math.max(5_000, options.sessionTimeoutMs),
      signal: options.signal,
      log: options.log,
    });
    const serviceId = await path.claim(zk, options.nameNew);
    return new ZooKeeperProvider(zk, options, path, serviceId);
  } catch (error) {
    await zk?.close();
    throw path.translated(error);
  }
}

/**
 * Reads which cluster owns the path, without creating anything there.
 * @returns undefined if it has no owner
 * @throws COORDINATION_…, OPTION_INVALID
 */
export async function lookAtZooKeeper(url: string): Promise<{ clusterId: string; serviceId: string } | undefined> {
  const path = new ClusterPath(url, "");
  let zk: ZooKeeper | undefined;
  try {
    zk = await connect(path.servers, { ...path.access, connectTimeoutMs: 5_000 });
    return await path.look(zk);
  } catch (error) {
    throw path.translated(error);
  } finally {
    await zk?.close();
  }
}

class ZooKeeperProvider implements MembershipProvider {
  readonly title = "ZooKeeper";
  readonly serviceId: string;
  readonly #zk: ZooKeeper;
  readonly #options: MembershipProviderOptions & { clock: Clock };
  readonly #path: ClusterPath;
  readonly #left = new AbortController();
  readonly #listeners: Told[] = [];
  #announced: Shown | undefined;
  #wake: () => void = () => undefined;
  #showing: Promise<void> | undefined;
  /** The entry of this process in the list, the ZooKeeper session that owns the entry's node, and when the node was created. */
  #shown: { session: Session; member: Shown; sinceMono: number } | undefined;
  /** The id of ZooKeeper's current data (a wipe or a restore changes it), and when this process first saw that id. */
  #known: { incarnation: string; sinceMono: number } | undefined;
  #members: ZooKeeperMembers | undefined;
  #latch: LeaderLatch | undefined;

  constructor(
    zk: ZooKeeper,
    options: MembershipProviderOptions & { clock: Clock },
    path: ClusterPath,
    serviceId: string,
  ) {
    this.#zk = zk;
    this.#options = options;
    this.#path = path;
    this.serviceId = serviceId;
    zk.onSession((session) => this.#follow(session));
    this.#follow(zk.session);
  }

  announce(shown: Shown): void {
    this.#announced = shown;
    this.#showing ??= this.#show();
    this.#wake();
  }

  shownUntil(): number {
    const shown = this.#shown;
    if (!shown || shown.member.sessionId !== this.#announced?.sessionId || !shown.session.live) return 0;
    return this.#options.clock.monotonic() + shown.session.remainingMs;
  }

  /**
   * When the node was created; Infinity if there is none. A ZooKeeper session keeps its node without interruption unless another
   * client deletes it (see `#watchOwn`), and a new session creates a new node.
   */
  shownSince(): number {
    return this.#shown?.sinceMono ?? Number.POSITIVE_INFINITY;
  }

  sure(): boolean {
    const { session } = this.#zk;
    return session.state === "connected" && session.live;
  }

  async gone(sessionIds: readonly number[]): Promise<number[]> {
    const { session } = this.#zk;
    try {
      // The connected server may lag behind the leader of the ensemble, so it catches up first.
      await session.sync(members);
      const [born, ...there] = await Promise.all([
        this.#path.born(session),
        ...sessionIds.map((id) => session.exists(`${members}/${id}`)),
      ]);
      this.#requireAge(this.#knownSince(born, session));
      return sessionIds.filter((_, index) => there[index] === undefined);
    } catch (error) {
      throw this.#path.translated(error);
    }
  }

  /**
   * A wiped or restored ZooKeeper lists no sessions at first, not even live ones that may rely on it until their timeout. So no session
   * counts as gone until this process has known the current data for a whole timeout.
   * @throws COORDINATION_UNREACHABLE before that
   */
  #requireAge(sinceMono: number): void {
    const { clock, sessionTimeoutMs } = this.#options;
    const leftMs = Math.ceil(sinceMono + sessionTimeoutMs - clock.monotonic());
    if (leftMs <= 0) return;
    throw new CarillonError(
      "COORDINATION_UNREACHABLE",
      `ZooKeeper is new here and cannot tell for another ${leftMs} ms who is gone`,
      {
        hint: "This node began just now, or the service was wiped. Those who are alive show themselves again meanwhile.",
      },
    );
  }

  #knownSince(born: string, session: Session): number {
    const incarnation = `${born} ${session.rewoundFrom ?? ""}`;
    if (this.#known?.incarnation !== incarnation)
      this.#known = { incarnation, sinceMono: this.#options.clock.monotonic() };
    return this.#known.sinceMono;
  }

  shown(): ReadonlySet<number> | undefined {
    if (!this.#left.signal.aborted)
      this.#members ??= new ZooKeeperMembers(this.#zk, members, this.#options.clock, {
        gone: () => this.#tell("members"),
        trouble: (error) => this.#trouble(error),
      });
    return this.#members?.shown;
  }

  async described(sessionId: number): Promise<Shown | undefined> {
    try {
      const { data } = await this.#zk.session.get(`${members}/${sessionId}`);
      return parsedMember(data);
    } catch (error) {
      if (isZooKeeperError(error, "NO_NODE")) return undefined;
      throw this.#path.translated(error);
    }
  }

  contend(): void {
    if (this.#latch || this.#left.signal.aborted) return;
    const latch = new LeaderLatch(this.#zk, "/leader", { id: this.#announced?.node ?? "", acl: this.#path.acl });
    latch.listen({
      isLeader: () => this.#tell("first"),
      notLeader: () => {
        this.#unfollow();
        this.#tell("first");
      },
      trouble: (error) => this.#trouble(error),
    });
    this.#latch = latch;
    latch.start().catch((error) => {
      this.#trouble(error);
      if (this.#latch === latch) this.#latch = undefined; // the next heartbeat enters the queue again
    });
  }

  /** Stops watching the members; called when this process is not the first in the queue. */
  #unfollow(): void {
    void this.#members?.close();
    this.#members = undefined;
  }

  async stepDown(): Promise<void> {
    const latch = this.#latch;
    this.#latch = undefined;
    this.#unfollow();
    await latch?.close().catch((error) => this.#trouble(error));
    if (latch) this.#tell("first");
  }

  first(): boolean {
    return this.#latch?.hasLeadership ?? false;
  }

  /** The same as `first`: after a wipe, the head of the new queue is certainly first, because nodes of the old queue are gone. */
  ahead(): boolean {
    return this.first();
  }

  onChange(listener: Told): void {
    this.#listeners.push(listener);
  }

  async locks(needs: LockNeeds): Promise<LockPlace> {
    const { clock, log, sessionTimeoutMs } = this.#options;
    return new ZooKeeperLocks({ ...needs, zk: this.#zk, path: this.#path, clock, log, timeoutMs: sessionTimeoutMs });
  }

  async leave(): Promise<void> {
    this.#left.abort();
    this.#wake();
    await this.stepDown();
    await this.#members?.close();
    await this.#zk.close();
    await this.#showing;
  }

  #follow(session: Session): void {
    const stop = session.onState((state) => {
      if (state === "ended") {
        stop();
        this.#wake();
      }
      this.#tell("sure");
    });
    this.#tell("sure");
    void this.#keepPath(session);
  }

  /** Creates a wiped path again, even if this process has no entry in the list and only uses locks. */
  async #keepPath(session: Session): Promise<void> {
    const over = AbortSignal.any([session.signal, this.#left.signal]);
    for (let told = false; !over.aborted; ) {
      try {
        const changed = new AbortController();
        const end = AbortSignal.any([over, changed.signal]);
        if (!(await this.#path.exists(session, () => changed.abort()))) await this.#claim();
        else if (!end.aborted) await new Promise((resolve) => end.addEventListener("abort", resolve, { once: true }));
      } catch (error) {
        if (!told && !over.aborted) this.#trouble(error);
        told = true;
        await pause(this.#options.clock, retryMs, over);
      }
    }
  }

  #claim(): Promise<string> {
    return this.#path.claim(this.#zk, async () => this.serviceId);
  }

  /** Creates this process's node in the list, again in each new ZooKeeper session, and updates it when the announced data changes. */
  async #show(): Promise<void> {
    const { clock } = this.#options;
    while (!this.#left.signal.aborted) {
      const woken = new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      try {
        const session = await this.#zk.established(this.#left.signal);
        if (this.#shown?.session !== session || this.#shown.member !== this.#announced) await this.#showIn(session);
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
    const path = `${members}/${member.sessionId}`;
    if (before?.session === session && before.member.sessionId === member.sessionId) {
      await session.set(path, JSON.stringify(member));
      this.#shown = { ...before, member };
      return;
    }
    this.#shown = undefined;
    if (before?.session === session) await this.#remove(session, before.member.sessionId);
    await this.#claim();
    this.#knownSince(await this.#path.born(session), session);
    for (;;) {
      try {
        await session.create(path, JSON.stringify(member), { ephemeral: true, acl: this.#path.acl });
        break;
      } catch (error) {
        if (!isZooKeeperError(error, "NODE_EXISTS", "CONNECTION_LOSS")) throw error;
        const there = await session.exists(path);
        if (there?.ephemeralOwner === session.id) break;
        // The existing node belongs to another ZooKeeper session, usually an ended one of this process, so it is replaced.
        if (there) await this.#remove(session, member.sessionId);
      }
    }
    this.#shown = { session, member, sinceMono: this.#options.clock.monotonic() };
    this.#watchOwn(session, path);
    this.#tell("sure");
  }

  /**
   * Watches this process's own node: another client may delete it, or ZooKeeper may be wiped during the session; then the process is no
   * longer listed.
   */
  #watchOwn(session: Session, path: string): void {
    const lost = () => {
      if (this.#shown?.session !== session || !path.endsWith(`/${this.#shown.member.sessionId}`)) return;
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
        .catch(() => undefined); // the request failed, usually because the session has ended, which its own listener reports
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
    if (!this.#left.signal.aborted) this.#options.log(`ZooKeeper: ${messageOf(error)}`);
  }
}

function parsedMember(data: Buffer | undefined): Shown | undefined {
  try {
    const value: unknown = JSON.parse(data?.toString("utf8") ?? "");
    return typeof value === "object" && value !== null && "sessionId" in value ? (value as Shown) : undefined;
  } catch {
    return undefined; // data of another program under the cluster's path describes no member; `gone` checks only whether the node exists
  }
}
