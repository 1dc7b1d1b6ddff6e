import { connect, readAcl } from "@carillon/zookeeper";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { Ensemble } from "../../../zookeeper/test/support/ensemble.ts";
import { ZooKeeperProxy } from "../../../zookeeper/test/support/proxy.ts";
import { systemClock } from "../../src/clock.ts";
import { joinCluster } from "../../src/coordination/membership.ts";
import { openCoordination } from "../../src/coordination/open.ts";
import type { Membership } from "../../src/coordination.ts";
import { CarillonError } from "../../src/errors.ts";
import type { Store } from "../../src/store.ts";
import { StoreClock } from "../../src/store-clock.ts";
import type { Witness } from "../../src/witness.ts";
import { everyPostgres } from "../support/servers.ts";
import { openStage, recordingLog, type Stage } from "../support/store-stage.ts";

const timeoutMs = 2_000;
const soon = { timeout: 15_000, interval: 20 };

/** Sessions and leadership with ZooKeeper beside the store: real clocks, real faults. */
describe.each(everyPostgres().slice(0, 1))("membership with ZooKeeper, on $title", (server) => {
  let stage: Stage;
  let ensemble: Ensemble;
  const nodes: Node[] = [];
  let paths = 0;
  let path = "";
  beforeAll(async () => {
    [stage, ensemble] = await Promise.all([openStage(server), Ensemble.start({ servers: 1, tickTime: 200 })]);
  });
  afterEach(async () => {
    for (const node of nodes.splice(0)) await node.stop();
    path = "";
  });
  afterAll(() => Promise.all([stage.close(), ensemble.stop()]));

  class Node {
    readonly log = recordingLog();
    readonly proxy: ZooKeeperProxy;
    readonly rejoins: [number, number][] = [];
    membership!: Membership;
    witness!: Witness;
    cutFromStore = false;

    private constructor(proxy: ZooKeeperProxy) {
      this.proxy = proxy;
    }

    static async join(name: string): Promise<Node> {
      path ||= `/cluster-${paths++}/carillon`;
      const node = new Node(await ZooKeeperProxy.before(ensemble.server.address));
      nodes.push(node);
      const { sessions } = stage.store;
      const beat: typeof sessions.beat = (...given) =>
        node.cutFromStore ? Promise.reject(new CarillonError("STORE_UNREACHABLE", "cut")) : sessions.beat(...given);
      const store = { ...stage.store, sessions: { ...sessions, beat } } satisfies Store;
      const { log } = node.log;
      const clock = systemClock;
      const signal = new AbortController().signal;
      const url = `zookeeper://${node.proxy.address}${path}`;
      const options = { clock, log, signal, failFast: true, sessionTimeoutMs: timeoutMs };
      node.witness = (await openCoordination(url, store.sessions, options)) as Witness;
      node.membership = await joinCluster({
        store,
        witness: node.witness,
        clock,
        storeClock: new StoreClock(clock),
        identity: { node: name, role: "node", host: "here", pid: process.pid, version: "0", timeoutMs },
        beatMs: timeoutMs / 2,
        log,
      });
      node.membership.onRejoin((lost, next) => node.rejoins.push([lost, next]));
      return node;
    }

    get leads(): boolean {
      return this.membership.term() !== null;
    }

    async stop(): Promise<void> {
      this.cutFromStore = false;
      this.proxy.resume();
      this.proxy.accept();
      await this.membership?.leave("the test is over");
      await this.proxy[Symbol.asyncDispose]();
    }
  }

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

  it("shows its nodes there, one leads, and another at once when it leaves", async () => {
    for (const name of ["a", "b", "c"]) await Node.join(name);
    const first = await oneLeads();
    await expect.poll(witnessed, soon).toEqual(["a", "b", "c"]);
    await expect.poll(() => first.witness.shown()?.size, soon).toBe(3);
    const term = first.membership.term() as number;
    const began = performance.now();
    await first.membership.leave("stopped");
    nodes.splice(nodes.indexOf(first), 1);
    const second = await oneLeads();
    expect(performance.now() - began).toBeLessThan(timeoutMs);
    expect(second.membership.term()).toBeGreaterThan(term);
    expect(await members()).toHaveLength(2);
    await first.stop();
  });

  it("cut from ZooKeeper: leads no more, another does; it relies on the store, keeps its session, and comes back", async () => {
    for (const name of ["a", "b"]) await Node.join(name);
    const first = await oneLeads();
    await expect.poll(witnessed, soon).toEqual(["a", "b"]);
    const session = first.membership.sessionId;
    first.proxy.refuse();
    first.proxy.reset();
    await expect.poll(() => leaders().filter((node) => node !== first).length, soon).toBe(1);
    expect(first.leads).toBe(false);
    expect(first.membership.trusted()).toBe(true);
    await expect.poll(async () => (await witnessed()).length, soon).toBe(1);
    // Longer than any session lasts: it lives by its heartbeat.
    await new Promise((resolve) => setTimeout(resolve, 2 * timeoutMs));
    expect([first.membership.sessionId, first.membership.trusted(), first.rejoins]).toEqual([session, true, []]);
    first.proxy.accept();
    await expect.poll(witnessed, soon).toEqual(["a", "b"]);
    expect(leaders()).toHaveLength(1);
  });

  it("cut from the store: leads no more, gives its place in line to another, whose term is higher", async () => {
    for (const name of ["a", "b"]) await Node.join(name);
    const first = await oneLeads();
    const term = first.membership.term() as number;
    await expect.poll(witnessed, soon).toEqual(["a", "b"]);
    first.cutFromStore = true;
    await expect.poll(() => leaders().filter((node) => node !== first).length, soon).toBe(1);
    expect(first.leads).toBe(false);
    expect(leaders()[0]?.membership.term()).toBeGreaterThan(term);
    const [, former] = await stage.store.sessions.terms(2);
    expect(former).toMatchObject({ term, endedWhy: expect.stringMatching(/deposed/) });
    // ZooKeeper shows it: nobody takes it for dead, and it comes back as it was.
    first.cutFromStore = false;
    await expect.poll(() => first.membership.trusted(), soon).toBe(true);
    expect(first.rejoins).toEqual([]);
    expect(leaders()).toHaveLength(1);
  });

  it("a node that vanished is found by the service, and its session ended", async () => {
    for (const name of ["a", "b"]) await Node.join(name);
    const first = await oneLeads();
    await expect.poll(witnessed, soon).toEqual(["a", "b"]);
    first.cutFromStore = true;
    first.proxy.refuse();
    first.proxy.reset();
    const trustEnded = expect.poll(() => first.membership.trusted(), soon).toBe(false);
    await expect.poll(async () => (await members()).length, soon).toBe(1);
    // It knew before the others acted: its trust ends by its own clock.
    expect(first.membership.trusted()).toBe(false);
    await trustEnded;
    await expect.poll(() => leaders().length, soon).toBe(1);
    first.proxy.accept();
    first.cutFromStore = false;
    await expect.poll(() => first.rejoins.length, soon).toBe(1);
    await expect.poll(witnessed, soon).toEqual(["a", "b"]);
  });

  it("ZooKeeper away: nobody leads, everybody lives, the dead are found by their silence; back: one leads", async () => {
    for (const name of ["a", "b", "c"]) await Node.join(name);
    await oneLeads();
    await expect.poll(witnessed, soon).toEqual(["a", "b", "c"]);
    for (const node of nodes) node.proxy.refuse();
    for (const node of nodes) node.proxy.reset();
    await expect.poll(() => leaders().length, soon).toBe(0);
    await expect.poll(witnessed, soon).toEqual([]);
    const [dead] = nodes as [Node];
    dead.cutFromStore = true;
    await expect.poll(async () => (await members()).length, soon).toBe(2);
    const [, ...others] = nodes;
    expect(others.map(({ membership }) => membership.trusted())).toEqual([true, true]);
    expect(others.flatMap(({ rejoins }) => rejoins)).toEqual([]);
    dead.cutFromStore = false;
    for (const node of nodes) node.proxy.accept();
    await oneLeads();
    await expect.poll(witnessed, soon).toEqual(["a", "b", "c"]);
  });

  it("a name in use is refused, and one whose holder is gone is taken over", async () => {
    const first = await Node.join("a");
    await oneLeads();
    await expect.poll(witnessed, soon).toEqual(["a"]);
    await expect(Node.join("a")).rejects.toMatchObject({ code: "NODE_NAME_TAKEN" });
    first.cutFromStore = true;
    first.proxy.refuse();
    first.proxy.reset();
    const again = await Node.join("a");
    expect(again.membership.sessionId).toBeGreaterThan(first.membership.sessionId);
  });

  it("with credentials in the URL strangers neither read nor write the cluster's path", async () => {
    const options = { clock: systemClock, log: recordingLog().log, signal: new AbortController().signal };
    const sessions = {
      ...stage.store.sessions,
      cluster: async () => ({ clusterId: "closed", coordination: null, lockEra: 0 }),
    };
    sessions.coordinateBy = async () => true;
    const at = (who: string) =>
      openCoordination(`zookeeper://${who}${ensemble.server.address}/guarded/carillon`, sessions, {
        ...options,
        failFast: true,
        sessionTimeoutMs: timeoutMs,
      });
    const witness = (await at("ann:secret@")) as Witness;
    witness.announce({ sessionId: 7, node: "a", role: "node", host: "h", pid: 1, version: "0", groups: [] });
    await expect.poll(() => witness.sure(), soon).toBe(true);
    await expect(at("")).rejects.toMatchObject({ code: "COORDINATION_REFUSED" });
    await expect(at("bob:guess@")).rejects.toMatchObject({
      code: "COORDINATION_REFUSED",
      message: expect.not.stringContaining("guess"),
    });
    const stranger = await connect(ensemble.connectString("/guarded/carillon"));
    await expect(stranger.create("/members/8")).rejects.toMatchObject({ code: "NO_AUTH" });
    await expect(stranger.get("/members/7")).rejects.toMatchObject({ code: "NO_AUTH" });
    await stranger.close();
    await witness.leave();
  });

  it("the service wiped: all are shown anew, nobody is taken for dead, and terms go on", async () => {
    for (const name of ["a", "b"]) await Node.join(name);
    const first = await oneLeads();
    const term = first.membership.term() as number;
    await expect.poll(witnessed, soon).toEqual(["a", "b"]);
    await ensemble.killAll();
    await ensemble.wipeAll();
    await ensemble.startAll();
    await expect.poll(() => leaders().length, { ...soon, timeout: 40_000 }).toBe(1);
    await expect.poll(witnessed, { ...soon, timeout: 40_000 }).toEqual(["a", "b"]);
    expect(leaders()[0]?.membership.term()).toBeGreaterThan(term);
    expect(nodes.flatMap(({ rejoins }) => rejoins)).toEqual([]);
  }, 90_000);

  it("refuses a path of another cluster, foreign data, another way to coordinate, and an unknown scheme", async () => {
    await Node.join("a");
    const away = {
      clock: systemClock,
      log: recordingLog().log,
      signal: new AbortController().signal,
      failFast: true,
      sessionTimeoutMs: timeoutMs,
    };
    const at = (where: string) =>
      openCoordination(`zookeeper://${ensemble.server.address}${where}`, stage.store.sessions, away);
    await expect(openCoordination(undefined, stage.store.sessions, away)).rejects.toMatchObject({
      code: "COORDINATION_DIFFERS",
    });
    await expect(at("/elsewhere/carillon")).rejects.toMatchObject({ code: "COORDINATION_DIFFERS" });
    const other = {
      ...stage.store.sessions,
      cluster: async () => ({ clusterId: "another", coordination: null, lockEra: 0 }),
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
  });
});
