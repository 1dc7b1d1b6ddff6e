import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { isZooKeeperError } from "../../src/base/errors.ts";
import type { ZooKeeper } from "../../src/operations/session.ts";
import { createContainers } from "../../src/recipes/base/protect.ts";
import { Mailbox, type MailboxOptions } from "../../src/recipes/mailbox/mailbox.ts";
import { Mailboxes, type Route } from "../../src/recipes/mailbox/mailboxes.ts";
import { namesUnder } from "../support/names-under.ts";
import { op, ZooKeeperProxy } from "../support/proxy.ts";
import { ownPath, serverTitle, sharedServer } from "../support/servers.ts";
import { Clients, endingSessionMs, until } from "./stage.ts";

/** A session timeout in ms so short that some sessions end during the random histories. */
const shortSessionMs = 1_500;

describe(`mailboxes on ${serverTitle()}`, () => {
  let clients: Clients;
  let path: string;
  let boss: Mailboxes;
  let bossClient: ZooKeeper;
  const proxies: ZooKeeperProxy[] = [];
  const boxes: Mailbox[] = [];
  /** All claims in order: the member and the letter. */
  let claimed: { by: string; id: string; text: string }[];
  beforeEach(async () => {
    clients = new Clients();
    path = ownPath("mail");
    claimed = [];
    bossClient = await clients.connect();
    boss = new Mailboxes(bossClient, path);
  });
  afterEach(async () => {
    for (const proxy of proxies) proxy.accept();
    for (const proxy of proxies) proxy.resume();
    await Promise.all(boxes.splice(0).map((box) => box.close()));
    await clients.closeAll();
    await Promise.all(proxies.splice(0).map((proxy) => proxy.close()));
  });

  async function lineOf(sessionTimeoutMs = endingSessionMs): Promise<{ client: ZooKeeper; proxy: ZooKeeperProxy }> {
    const proxy = await ZooKeeperProxy.before(sharedServer());
    proxies.push(proxy);
    return { client: await clients.connect({ sessionTimeoutMs }, proxy.address), proxy };
  }

  function boxOf(client: ZooKeeper, member: string, options: Partial<MailboxOptions> = {}): Mailbox {
    const onLetter: MailboxOptions["onLetter"] = ({ id, data }) =>
      claimed.push({ by: member, id, text: data.toString() });
    const box = new Mailbox(client, path, member, { onLetter, ...options });
    boxes.push(box);
    return box;
  }

  async function member(name: string): Promise<Mailbox> {
    const box = boxOf(await clients.connect(), name);
    await box.start();
    return box;
  }

  /** Creates a live member that claims no letter. */
  async function idler(name: string): Promise<ZooKeeper> {
    const client = await clients.connect();
    await createContainers(client.session, `${path}/assign/${name}`);
    await createContainers(client.session, `${path}/members`);
    await client.create(`${path}/members/${name}`, "idle", { ephemeral: true });
    return client;
  }

  const firstOf: Route = (_, members) => members[0];
  const ids = () => claimed.map(({ id }) => id).sort();
  const marks = (name: string) => namesUnder(bossClient, `${path}/claims/${name}`);

  it("deliver to live members, who claim each letter once, in the order of sending", async () => {
    const [a, b] = [await member("a"), await member("b")];
    expect([a.live, (await boss.members()).sort()]).toEqual([true, ["a", "b"]]);
    for (let i = 0; i < 30; i++) await boss.deliver(i % 3 ? "a" : "b", `letter ${i}`);
    await until("all are claimed", () => claimed.length === 30);
    for (const [name, kept] of [
      ["a", (i: number) => i % 3 !== 0],
      ["b", (i: number) => i % 3 === 0],
    ] as const) {
      const expected = Array.from({ length: 30 }, (_, i) => i).filter(kept);
      expect(claimed.filter(({ by }) => by === name).map(({ text }) => text)).toEqual(
        expected.map((i) => `letter ${i}`),
      );
    }
    expect([await boss.unclaimed("a"), await boss.unclaimed("b")]).toEqual([[], []]);
    await until("no trace is left", async () => (await marks("a")).length + (await marks("b")).length === 0);
    await b.close();
    await expect(b.start()).rejects.toMatchObject({ code: "CLOSED" });
  });

  it("refuse dead members and invalid names", async () => {
    await member("a");
    await expect(boss.deliver("nobody", "x")).rejects.toMatchObject({
      code: "NO_NODE",
      path: `${path}/members/nobody`,
    });
    await expect(boss.deliver("a/b", "x")).rejects.toMatchObject({ code: "PATH_INVALID" });
    await expect(boss.deliver("a", "x", { id: "1/2" })).rejects.toMatchObject({ code: "PATH_INVALID" });
    expect(() => new Mailboxes(bossClient, "relative")).toThrow(/slash/);
    const stop = AbortSignal.abort();
    await expect(boss.deliver("a", "x", { signal: stop })).rejects.toMatchObject({ code: "ABORTED" });
  });

  it("a letter's id exists once in a mailbox", async () => {
    await idler("a");
    expect(await boss.deliver("a", "x", { id: "slot-7" })).toBe("slot-7");
    await expect(boss.deliver("a", "y", { id: "slot-7" })).rejects.toMatchObject({ code: "NODE_EXISTS" });
    expect(await boss.unclaimed("a")).toEqual(["slot-7"]);
  });

  it("all letters of a dead member are moved to another member, and those of live members stay", async () => {
    const [dead] = [await idler("dead"), await idler("slow")];
    const sent: string[] = [];
    for (let i = 0; i < 20; i++) sent.push(await boss.deliver("dead", `letter ${i}`));
    await boss.deliver("slow", "stays");
    expect(await boss.reclaim(() => "slow")).toEqual([]);
    await dead.close();
    expect(await boss.reclaim(() => undefined)).toEqual([]);
    expect((await boss.unclaimed("dead")).length).toBe(20);
    expect(await boss.reclaim(() => "gone")).toEqual([]);
    await member("heir");
    const moved = await boss.reclaim(() => "heir");
    expect(moved.map(({ id }) => id).sort()).toEqual([...sent].sort());
    await until("the heir has them", () => claimed.length === 20);
    expect(ids()).toEqual([...sent].sort());
    expect(await boss.unclaimed("slow")).toHaveLength(1);
  });

  it("a letter that cannot be moved does not block other letters", async () => {
    const dead = await idler("dead");
    await idler("heir");
    await boss.deliver("dead", "1", { id: "both" });
    await boss.deliver("dead", "2", { id: "one" });
    await boss.deliver("heir", "3", { id: "both" });
    await dead.close();
    await expect(boss.reclaim(() => "heir")).rejects.toMatchObject({ code: "NODE_EXISTS" });
    expect([await boss.unclaimed("dead"), (await boss.unclaimed("heir")).sort()]).toEqual([["both"], ["both", "one"]]);
  });

  it("keep reclaims as soon as a member has gone, and ends with its abort signal", async () => {
    const dead = await idler("dead");
    const stop = new AbortController();
    const moved: string[] = [];
    const keeping = boss.keep(firstOf, { signal: stop.signal, onReclaimed: ({ id }) => moved.push(id) });
    const sent = [await boss.deliver("dead", "1"), await boss.deliver("dead", "2")].sort();
    await member("heir");
    await dead.close();
    await until("the heir has them", () => claimed.length === 2);
    expect([ids(), moved.sort()]).toEqual([sent, sent]);
    stop.abort();
    await keeping;
  });

  it("a sender that dies during a reclaim loses nothing: another sender continues it", async () => {
    const dead = await idler("dead");
    const sent: string[] = [];
    for (let i = 0; i < 30; i++) sent.push(await boss.deliver("dead", `letter ${i}`));
    await dead.close();
    await member("heir");
    const { client, proxy } = await lineOf();
    const dying = new Mailboxes(client, path);
    let routed = 0;
    const half = dying.reclaim(() => {
      if (++routed === 15) proxy.refuse(); // cuts the connection in the middle of the reclaiming, for ever
      return "heir";
    });
    await until("it is in the middle", () => routed === 15);
    await client.close();
    await expect(half).rejects.toThrow();
    await until("the living may go on", () => claimed.length >= 13);
    await boss.reclaim(() => "heir");
    await until("all are claimed", () => claimed.length === 30);
    expect(ids()).toEqual([...sent].sort());
  });

  it("if the answer to a claim is lost, the claimer finds out that it has the letter", async () => {
    const { client, proxy } = await lineOf();
    await boxOf(client, "a").start();
    const swallowed = proxy.swallowReply(op.multi);
    const id = await boss.deliver("a", "once");
    await swallowed;
    await until("it is claimed", () => claimed.length > 0);
    expect(claimed).toEqual([{ by: "a", id, text: "once" }]);
    await until("no trace is left", async () => (await marks("a")).length === 0);
  });

  it("if the answer to a claim and the session are lost, only the claimer has the letter", async () => {
    const { client, proxy } = await lineOf();
    await boxOf(client, "a").start();
    await member("heir");
    const stop = new AbortController();
    const keeping = boss.keep(() => "heir", { signal: stop.signal });
    const swallowed = proxy.swallowReply(op.multi, "silence");
    const id = await boss.deliver("a", "once");
    await swallowed;
    proxy.refuse();
    await until("the servers count it as dead", async () => !(await boss.members()).includes("a"));
    expect([await boss.unclaimed("a"), await boss.unclaimed("heir"), await marks("a")]).toEqual([[], [], [id]]);
    proxy.accept();
    await until("it found out in its next session", () => claimed.length > 0);
    expect(claimed).toEqual([{ by: "a", id, text: "once" }]);
    stop.abort();
    await keeping;
  });

  it("if a claim of a departed member never arrived, only another member gets the letter", async () => {
    const { client, proxy } = await lineOf();
    await boxOf(client, "a").start();
    await member("heir");
    const stop = new AbortController();
    const keeping = boss.keep(() => "heir", { signal: stop.signal });
    proxy.pause("toServer");
    const id = await boss.deliver("a", "once");
    await until("the heir has it", () => claimed.length > 0);
    proxy.reset();
    proxy.resume();
    await until("it lives again", async () => (await boss.members()).includes("a"));
    const last = await boss.deliver("a", "afterwards");
    await until("it has its next letter", () => claimed.length === 2);
    expect(claimed).toMatchObject([
      { by: "heir", id },
      { by: "a", id: last },
    ]);
    stop.abort();
    await keeping;
  });

  it("if the answer to a delivery is lost, the letter exists once", async () => {
    await member("a");
    const { client, proxy } = await lineOf();
    const sender = new Mailboxes(client, path);
    await sender.deliver("a", "first");
    const swallowed = proxy.swallowReply(op.multi);
    const id = await sender.deliver("a", "second");
    await swallowed;
    await until("both are claimed", () => claimed.length === 2);
    expect(claimed[1]).toMatchObject({ id, text: "second" });
    await until("receipts go", async () => (await namesUnder(bossClient, `${path}/sent`)).length === 0);
    expect(claimed).toHaveLength(2);
  });

  it("if the answer to a reclaim is lost, the letter is moved once", async () => {
    const dead = await idler("dead");
    const id = await boss.deliver("dead", "x");
    await dead.close();
    await idler("heir");
    const { client, proxy } = await lineOf();
    const swallowed = proxy.swallowReply(op.multi);
    expect(await new Mailboxes(client, path).reclaim(() => "heir")).toEqual([{ id, from: "dead", to: "heir" }]);
    await swallowed;
    expect([await boss.unclaimed("heir"), await boss.unclaimed("dead")]).toEqual([[id], []]);
  });

  it("the answer to a reclaim was lost and the letter is claimed before that is noticed: the move is reported", async () => {
    const dead = await idler("dead");
    const id = await boss.deliver("dead", "x");
    await dead.close();
    await member("heir");
    const { client, proxy } = await lineOf();
    const swallowed = proxy.swallowReply(op.multi, "silence");
    const reclaimed = new Mailboxes(client, path).reclaim(() => "heir");
    await swallowed;
    proxy.pause("toClient");
    await until("the heir has it", () => claimed.length === 1);
    proxy.reset();
    proxy.resume();
    expect(await reclaimed).toEqual([{ id, from: "dead", to: "heir" }]);
    expect(ids()).toEqual([id]);
  });

  it("a second process with the same name waits for the first to leave; a deleted node is created again", async () => {
    const first = await member("a");
    const second = boxOf(await clients.connect(), "a");
    const started = second.start();
    await bossClient.delete(`${path}/members/a`);
    await until("one of them has the name again", async () => (await boss.members()).includes("a"));
    const id = await boss.deliver("a", "x");
    await until("it is claimed", () => claimed.length > 0);
    await first.close();
    await started;
    expect([second.live, ids()]).toEqual([true, [id]]);
  });

  it("deletes the marks of its former lives, but not recent ones", async () => {
    const first = await member("a");
    await first.close();
    // The creation is tried again if it fails, because the server may delete an empty container at any moment.
    const put = (id: string) =>
      until("the mark is there", async () => {
        await createContainers(bossClient.session, `${path}/claims/a`);
        return bossClient.create(`${path}/claims/a/${id}`, "a former life").then(
          () => true,
          (error: unknown) => !isZooKeeperError(error, "NO_NODE"),
        );
      });
    await put("young");
    const second = await member("a");
    expect(await marks("a")).toEqual(["young"]);
    await second.close();
    const third = boxOf(await clients.connect(), "a", { markKeptMs: 0 });
    await third.start();
    expect(await marks("a")).toEqual([]);
    // A letter is claimed even if a mark with its id is left over.
    await put("again");
    await boss.deliver("a", "x", { id: "again" });
    await until("it is claimed", () => claimed.length > 0);
    expect(ids()).toEqual(["again"]);
  });

  it("random histories: each letter is claimed once, whatever fails", async () => {
    const seed = Math.floor(Math.random() * 2 ** 31);
    await history(seed).catch((error: unknown) => {
      throw new Error(`seed ${seed}`, { cause: error });
    });
  });

  async function history(seed: number): Promise<void> {
    let state = seed;
    const below = (n: number) => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
      return Math.floor((state / 0x80000000) * n);
    };
    const names = ["a", "b", "c"];
    const lines = await Promise.all([...names, "sender", "other sender"].map(() => lineOf(shortSessionMs)));
    for (const [at, name] of names.entries()) await boxOf((lines[at] as (typeof lines)[number]).client, name).start();
    const senders = lines.slice(3).map(({ client }) => new Mailboxes(client, path));
    const stop = new AbortController();
    const anyone: Route = (_, members) => members[below(members.length)];
    const keeping = senders.map((sender) => sender.keep(anyone, { signal: stop.signal }));
    const delivered = new Set<string>();
    const doubtful = new Set<string>();
    const deliveries: Promise<void>[] = [];
    let letters = 0;
    for (let step = 0; step < 60; step++) {
      const { proxy } = lines[below(lines.length)] as (typeof lines)[number];
      const dice = below(6);
      if (dice === 0) proxy.reset();
      else if (dice === 1) void proxy.swallowReply(op.multi);
      else if (dice === 2) proxy.pause("both");
      else for (const line of lines) line.proxy.resume();
      for (let burst = below(6); burst > 0; burst--) {
        const id = `letter-${letters++}`;
        const sender = senders[below(2)] as Mailboxes;
        const delivery = sender.deliver(names[below(3)] as string, "x", { id }).then(
          () => void delivered.add(id),
          (error: { code?: string }) => void (error.code !== "NO_NODE" && doubtful.add(id)),
        );
        deliveries.push(delivery);
      }
      await new Promise((resolve) => setTimeout(resolve, below(150)));
    }
    for (const { proxy } of lines) proxy.resume();
    await Promise.all(deliveries);
    await until("all are claimed", () => {
      const known = new Set(claimed.map(({ id }) => id));
      return [...delivered].every((id) => known.has(id));
    });
    stop.abort();
    await Promise.all(keeping);
    const all = ids();
    expect(all).toEqual([...new Set(all)]);
    for (const id of all) expect(delivered.has(id) || doubtful.has(id), id).toBe(true);
    expect(delivered.size).toBeGreaterThan(0);
  }
});
