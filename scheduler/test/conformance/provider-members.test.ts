/**
 * The tests take over a minute: with each service, sessions end because a connection was cut or the service failed, and other nodes are
 * elected then.
 */
import { connect, readAcl } from "@carillon/zookeeper";
import { Ensemble } from "@carillon/zookeeper/testing";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { CarillonError } from "../../src/base/errors.ts";
import type { Held } from "../../src/cluster/locks.ts";
import type { Membership } from "../../src/cluster/membership.ts";
import type { MembershipProvider } from "../../src/cluster/membership-provider.ts";
import type { Signal } from "../../src/cluster/signal-store.ts";
import { joinCluster } from "../../src/coordination/membership.ts";
import { openCoordination } from "../../src/coordination/open.ts";
import type { Store } from "../../src/store/store.ts";
import { StoreClock } from "../../src/store/store-clock.ts";
import {
  longestTimeoutMs,
  type ProviderMember,
  type ProviderStage,
  providerDrivers,
} from "../support/provider-stage.ts";
import { postgres } from "../support/servers.ts";
import { openStage, recordingLog, type Stage } from "../support/store-stage.ts";

/**
 * Session timeout in ms. Some tests wait for the end of a session, while other sessions must not end although a busy machine delays this
 * process.
 */
const timeoutMs = 4_000;
/**
 * The longest heartbeat interval of a node in ms, at any session timeout. A heartbeat's reply also reports changes whose signals were lost.
 */
const longestBeatMs = 1_000;
const soon = { timeout: 60_000, interval: 20 };

/** A process with its connection to the service; its heartbeats to the store go through this object too, so a test can cut both. */
class Node {
  readonly log = recordingLog();
  readonly member: ProviderMember;
  readonly rejoins: [number, number][] = [];
  membership!: Membership;
  cutFromStore = false;
  /**
   * Sessions that a test hides from this process: its queries to the service report them as gone, as if another process had removed
   * them.
   */
  readonly hidden = new Set<number>();
  readonly #listening = new AbortController();
  #heard = Promise.resolve();

  private constructor(member: ProviderMember) {
    this.member = member;
  }

  static async join(name: string, stage: Stage, service: ProviderStage, nodes: Node[], sessionTimeoutMs: number) {
    const node = new Node(await service.make({ sessionTimeoutMs }));
    nodes.push(node);
    const { sessions } = stage.store;
    const beat: typeof sessions.beat = (...given) =>
      node.cutFromStore ? Promise.reject(new CarillonError("STORE_UNREACHABLE", "cut")) : sessions.beat(...given);
    const store = { ...stage.store, sessions: { ...sessions, beat } } satisfies Store;
    const clock = systemClock;
    node.membership = await joinCluster({
      store,
      provider: node.#hiding(),
      clock,
      storeClock: new StoreClock(clock),
      log: node.log.log,
      identity: { node: name, role: "node", host: "here", pid: process.pid, version: "0", timeoutMs: sessionTimeoutMs },
      beatMs: Math.min(sessionTimeoutMs / 2, longestBeatMs),
    });
    node.membership.onRejoin((lost, next) => node.rejoins.push([lost, next]));
    // As in a real node, a heartbeat is sent at once after a signal that leadership was taken or released, and after a request for a
    // heartbeat of this node's session.
    const heard = (signal: Signal) => {
      const isAsked = signal.kind === "prompt" && signal.sessionId === node.membership.sessionId;
      if (signal.kind === "leadership" || isAsked) node.membership.refresh();
    };
    node.#heard = stage.store.signals.listen(heard, node.#listening.signal);
    return node;
  }

  #hiding(): MembershipProvider {
    const { provider, hidden } = this;
    const shown = () => provider.shown() && new Set([...(provider.shown() ?? [])].filter((id) => !hidden.has(id)));
    const gone = async (ids: readonly number[]) => [
      ...(await provider.gone(ids.filter((id) => !hidden.has(id)))),
      ...ids.filter((id) => hidden.has(id)),
    ];
    const changed: Partial<MembershipProvider> = { shown, gone };
    return new Proxy(provider, {
      get(_, name: keyof MembershipProvider) {
        const value = changed[name] ?? provider[name];
        return typeof value === "function" ? value.bind(provider) : value;
      },
    });
  }

  get provider(): MembershipProvider {
    return this.member.provider;
  }

  get leads(): boolean {
    return this.membership.term() !== null;
  }

  async stop(): Promise<void> {
    this.cutFromStore = false;
    this.#listening.abort();
    await this.#heard;
    this.member.heal();
    await this.membership?.leave("the test is over");
    await this.member.close();
  }
}

/** Tests sessions and leadership with a coordination service beside the store, with real clocks and real faults. */
describe.each(providerDrivers)("membership with $title", (driver) => {
  let stage: Stage;
  let service: ProviderStage;
  const nodes: Node[] = [];
  const lasting: ProviderStage[] = [];
  beforeAll(async () => {
    [stage, service] = await Promise.all([openStage(postgres()), driver.open()]);
  });
  afterEach(async () => {
    for (const node of nodes.splice(0)) await node.stop();
    for (const own of lasting.splice(0)) await own.close();
  });
  afterAll(() => Promise.all([stage.close(), service.close()]));

  const join = (name: string) => Node.join(name, stage, service, nodes, timeoutMs);
  /** Starts a new service with nodes whose sessions are longer than any test, so that each node learns of a change by a message. */
  const joinForLong = async (names: string[]) => {
    const own = await driver.open();
    lasting.push(own);
    for (const name of names) await Node.join(name, stage, own, nodes, longestTimeoutMs);
    return own;
  };
  const leaders = () => nodes.filter((node) => node.leads);
  const oneLeads = async () => {
    await expect.poll(() => leaders().length, soon).toBe(1);
    return leaders()[0] as Node;
  };
  const members = async () => (await stage.store.sessions.members()).members;
  const witnessed = async () =>
    (await members())
      .filter((member) => member.witnessed)
      .map(({ node }) => node)
      .sort();

  it("lists its nodes there; one node leads, and another at once when it leaves", async () => {
    await joinForLong(["a", "b", "c"]);
    const first = await oneLeads();
    await expect.poll(witnessed, soon).toEqual(["a", "b", "c"]);
    await expect.poll(() => first.provider.shown()?.size, soon).toBe(3);
    const term = first.membership.term() as number;
    await first.membership.leave("stopped");
    nodes.splice(nodes.indexOf(first), 1);
    const second = await oneLeads();
    expect(second.membership.term()).toBeGreaterThan(term);
    expect(await members()).toHaveLength(2);
    await first.stop();
  });

  it("cut off from it, a leader is replaced, relies on the store, keeps its session, and comes back", async () => {
    for (const name of ["a", "b"]) await join(name);
    const first = await oneLeads();
    await expect.poll(witnessed, soon).toEqual(["a", "b"]);
    const session = first.membership.sessionId;
    first.member.cut();
    await expect.poll(() => leaders().filter((node) => node !== first).length, soon).toBe(1);
    expect(first.leads).toBe(false);
    expect(first.membership.trusted()).toBe(true);
    await expect.poll(async () => (await witnessed()).length, soon).toBe(1);
    // The wait is longer than a session lasts without heartbeats, so the session has stayed alive through its heartbeats to the store.
    await new Promise((resolve) => setTimeout(resolve, 1.5 * timeoutMs));
    expect([first.membership.sessionId, first.membership.trusted(), first.rejoins]).toEqual([session, true, []]);
    first.member.heal();
    await expect.poll(witnessed, soon).toEqual(["a", "b"]);
    expect(leaders()).toHaveLength(1);
  });

  it("cut off from the store, a leader is replaced, gives up its place in line, and the next term is higher", async () => {
    for (const name of ["a", "b"]) await join(name);
    const first = await oneLeads();
    const term = first.membership.term() as number;
    await expect.poll(witnessed, soon).toEqual(["a", "b"]);
    first.cutFromStore = true;
    await expect.poll(() => leaders().filter((node) => node !== first).length, soon).toBe(1);
    expect(first.leads).toBe(false);
    expect(leaders()[0]?.membership.term()).toBeGreaterThan(term);
    const [, former] = await stage.store.sessions.terms(2);
    expect(former).toMatchObject({ term, endedWhy: expect.stringMatching(/deposed/) });
    // The service reports the process as alive, so its session is not ended, and it continues with the same session.
    first.cutFromStore = false;
    await expect.poll(() => first.membership.trusted(), soon).toBe(true);
    expect(first.rejoins).toEqual([]);
    expect(leaders()).toHaveLength(1);
  });

  it("a vanished node is detected by the provider, and its session ended", async () => {
    for (const name of ["a", "b"]) await join(name);
    const first = await oneLeads();
    await expect.poll(witnessed, soon).toEqual(["a", "b"]);
    first.cutFromStore = true;
    first.member.cut();
    const trustEnded = expect.poll(() => first.membership.trusted(), soon).toBe(false);
    await expect.poll(async () => (await members()).length, soon).toBe(1);
    // The process distrusts its session before the others end it, because its trust expires by its own clock.
    expect(first.membership.trusted()).toBe(false);
    await trustEnded;
    await expect.poll(() => leaders().length, soon).toBe(1);
    first.member.heal();
    first.cutFromStore = false;
    await expect.poll(() => first.rejoins.length, soon).toBe(1);
    await expect.poll(witnessed, soon).toEqual(["a", "b"]);
  });

  it("a member that the provider does not list is not declared dead while its heartbeats reach the store", async () => {
    for (const name of ["a", "b"]) await join(name);
    const first = await oneLeads();
    const other = nodes.find((node) => node !== first) as Node;
    await expect.poll(witnessed, soon).toEqual(["a", "b"]);
    first.hidden.add(other.membership.sessionId);
    first.membership.refresh();
    const told = () => first.log.lines.some(({ message }) => message.includes("whose beats reach the store"));
    const outcome = async () => ((await members()).length < 2 ? "taken for dead" : told() ? "told" : "");
    await expect.poll(outcome, soon).toMatch(/./);
    expect(await outcome()).toBe("told");
    expect(other.rejoins).toEqual([]);
    other.cutFromStore = true;
    await expect.poll(async () => (await members()).length, soon).toBe(1);
    first.hidden.clear();
  });

  it("provider unreachable: no leader, all members live, dead ones found by silence; once back, one node leads", async () => {
    for (const name of ["a", "b", "c"]) await join(name);
    await oneLeads();
    await expect.poll(witnessed, soon).toEqual(["a", "b", "c"]);
    for (const node of nodes) node.member.cut();
    await expect.poll(() => leaders().length, soon).toBe(0);
    await expect.poll(witnessed, soon).toEqual([]);
    const [dead] = nodes as [Node];
    dead.cutFromStore = true;
    await expect.poll(async () => (await members()).length, soon).toBe(2);
    const [, ...others] = nodes;
    expect(others.map(({ membership }) => membership.trusted())).toEqual([true, true]);
    expect(others.flatMap(({ rejoins }) => rejoins)).toEqual([]);
    dead.cutFromStore = false;
    for (const node of nodes) node.member.heal();
    await oneLeads();
    await expect.poll(witnessed, soon).toEqual(["a", "b", "c"]);
  });

  it("a name in use is refused, and one whose holder is gone is taken over", async () => {
    const first = await join("a");
    await oneLeads();
    await expect.poll(witnessed, soon).toEqual(["a"]);
    await expect(join("a")).rejects.toMatchObject({ code: "NODE_NAME_TAKEN" });
    first.cutFromStore = true;
    first.member.cut();
    const again = await join("a");
    expect(again.membership.sessionId).toBeGreaterThan(first.membership.sessionId);
  });

  it("provider wiped: all members are listed again, none is declared dead, and terms continue", async () => {
    for (const name of ["a", "b"]) await join(name);
    const first = await oneLeads();
    const term = first.membership.term() as number;
    await expect.poll(witnessed, soon).toEqual(["a", "b"]);
    await service.wipeService();
    const anew = () => nodes.every(({ provider }) => provider.sure() && provider.shownUntil() > performance.now());
    await expect.poll(anew, soon).toBe(true);
    await expect.poll(() => leaders().length, soon).toBe(1);
    await expect.poll(witnessed, soon).toEqual(["a", "b"]);
    expect(leaders()[0]?.membership.term()).toBeGreaterThanOrEqual(term);
    expect(nodes.flatMap(({ rejoins }) => rejoins)).toEqual([]);
  });

  it("provider restarted: one node leads, without help, however long a session lasts", async () => {
    const own = await joinForLong(["a", "b"]);
    await oneLeads();
    await own.restartService();
    const sure = () => nodes.every(({ provider }) => provider.sure());
    await expect.poll(() => sure() && leaders().length, soon).toBe(1);
    const [leader] = leaders();
    expect((await stage.store.sessions.members()).leadership).toMatchObject({
      sessionId: leader?.membership.sessionId,
      term: leader?.membership.term(),
    });
    expect(nodes.flatMap(({ rejoins }) => rejoins)).toEqual([]);
  });
});

/** Tests what only ZooKeeper does. redis-provider.test.ts tests what only Redis does. */
describe("membership with ZooKeeper: ownership of the path", () => {
  /** Session timeout in ms; no test here waits for the end of a session. */
  const keptMs = 6_000;
  let stage: Stage;
  let ensemble: Ensemble;
  const after: (() => void)[] = [];
  const identity = {
    node: "a",
    role: "node" as const,
    host: "here",
    pid: process.pid,
    version: "0",
    timeoutMs: keptMs,
  };
  beforeAll(async () => {
    [stage, ensemble] = await Promise.all([openStage(postgres()), Ensemble.start({ servers: 1, tickTime: 200 })]);
  });
  afterEach(() => {
    for (const end of after.splice(0)) end();
  });
  afterAll(() => Promise.all([stage.close(), ensemble.stop()]));

  it("with credentials in the URL, other users can neither read nor write the cluster's path", async () => {
    const { signal } = new AbortController();
    const options = { clock: systemClock, storeClock: new StoreClock(systemClock), log: recordingLog().log, signal };
    const sessions = {
      ...stage.store.sessions,
      cluster: async () => ({ clusterId: "closed", coordination: null, coordinationAt: null, lockEra: 0 }),
    };
    sessions.coordinateBy = async () => true;
    const at = (who: string) =>
      openCoordination(`zookeeper://${who}${ensemble.server.address}/guarded/carillon`, sessions, {
        ...options,
        failFast: true,
        sessionTimeoutMs: keptMs,
      });
    const provider = (await at("ann:secret@")) as MembershipProvider;
    provider.announce({ sessionId: 7, node: "a", role: "node", host: "h", pid: 1, version: "0", groups: [] });
    await expect.poll(() => provider.sure(), soon).toBe(true);
    await expect(at("")).rejects.toMatchObject({ code: "COORDINATION_REFUSED" });
    await expect(at("bob:guess@")).rejects.toMatchObject({
      code: "COORDINATION_REFUSED",
      message: expect.not.stringContaining("guess"),
    });
    const stranger = await connect(ensemble.connectString("/guarded/carillon"));
    await expect(stranger.create("/members/8")).rejects.toMatchObject({ code: "NO_AUTH" });
    await expect(stranger.get("/members/7")).rejects.toMatchObject({ code: "NO_AUTH" });
    const locks = await provider.locks({ era: 0, nextBase: async () => 1 });
    const held: (Held | undefined)[] = [];
    for (const kind of ["lock", "semaphore", "election"] as const) {
      held.push(await locks.permits({ kind, name: "x", permits: 1, fair: true }).acquire(true, options.signal));
    }
    const use = await locks.graceLock("x", { owner: "a" }).lock();
    for (const path of ["/locks/x", "/semaphores/x/leases", "/elections/x", "/grace-locks/x"]) {
      await expect(stranger.create(`${path}/_c_00000000-0000-0000-0000-000000000000-lock-0`)).rejects.toMatchObject({
        code: "NO_AUTH",
      });
    }
    await expect(stranger.delete("/grace-locks/x/holder")).rejects.toMatchObject({ code: "NO_AUTH" });
    expect([use.held, ...held.map((one) => one?.held)]).toEqual([true, true, true, true]);
    await stranger.close();
    await provider.leave();
  });

  it("refuses another cluster's path, foreign data, another coordination provider, and an unknown scheme", async () => {
    const path = "/cluster/carillon";
    const away = {
      clock: systemClock,
      storeClock: new StoreClock(systemClock),
      log: recordingLog().log,
      signal: new AbortController().signal,
      failFast: true,
      sessionTimeoutMs: keptMs,
    };
    const at = (where: string) =>
      openCoordination(`zookeeper://${ensemble.server.address}${where}`, stage.store.sessions, away);
    const provider = (await at(path)) as MembershipProvider;
    const { sessionId } = await stage.store.sessions.open(identity, stage.nowMs).then((opened) => {
      if ("sessionId" in opened) return opened;
      throw new Error("the name is taken");
    });
    const beating = setInterval(() => void stage.store.sessions.beat(sessionId, stage.nowMs), 20);
    after.push(() => clearInterval(beating));
    await expect(openCoordination(undefined, stage.store.sessions, away)).rejects.toMatchObject({
      code: "COORDINATION_DIFFERS",
    });
    await expect(at("/elsewhere/carillon")).rejects.toMatchObject({ code: "COORDINATION_DIFFERS" });
    const other = {
      ...stage.store.sessions,
      cluster: async () => ({ clusterId: "another", coordination: null, coordinationAt: null, lockEra: 0 }),
    };
    await expect(openCoordination(`zookeeper://${ensemble.server.address}${path}`, other, away)).rejects.toMatchObject({
      code: "COORDINATION_FOREIGN",
    });
    const root = await connect(ensemble.connectString());
    await root.create("/closed", "", { acl: readAcl });
    await root.create("/foreign");
    await root.create("/foreign/service", "not ours");
    await root.close();
    await expect(at("/closed")).rejects.toMatchObject({ code: "COORDINATION_REFUSED" });
    await expect(at("/foreign")).rejects.toMatchObject({ code: "COORDINATION_FOREIGN" });
    await expect(openCoordination("zookeeper://127.0.0.1:1/x", stage.store.sessions, away)).rejects.toMatchObject({
      code: "COORDINATION_UNREACHABLE",
    });
    await provider.leave();
  });
});
