/**
 * Tests in which servers fail while contenders work. Two contenders must never lead at once, and fences never decrease. After each fault
 * one contender leads. At the end every promise has settled, and nothing is left over.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { Session } from "../../src/operations/session.ts";
import { createPersistent } from "../../src/recipes/base/protect.ts";
import { LeaderLatch } from "../../src/recipes/leader/latch.ts";
import { Ensemble } from "../../src/testing/ensemble.ts";
import { Clients, endingSessionMs, until } from "../recipes/stage.ts";
import { ownPath } from "../support/servers.ts";
import { Cast } from "./cast.ts";

const sessionTimeoutMs = endingSessionMs;

describe("an ensemble under faults", () => {
  let ensemble: Ensemble;
  let clients: Clients;
  let cast: Cast;
  beforeAll(async () => {
    ensemble = await Ensemble.start({ servers: 3, tickTime: 200 });
    clients = new Clients(ensemble.connectString());
    cast = new Cast(ownPath("cast"));
    await cast.start(await Promise.all(Array.from({ length: 3 }, () => clients.connect({ sessionTimeoutMs }))));
    await cast.calm();
  });
  afterEach(async () => {
    if (!cast.ended) await cast.calm();
    expect(cast.wrong).toEqual([]);
  });
  afterAll(async () => {
    await clients?.closeAll();
    await ensemble?.stop();
  });

  test("a server hangs while connected: its clients move with their sessions, or step down in time", async () => {
    const [follower] = await ensemble.followers();
    const live = () => cast.clients.every(({ session }) => session.live && session.state === "connected");
    follower?.freeze();
    const besides = ensemble.servers.filter((server) => server !== follower);
    await until("all are connected elsewhere", async () => {
      const connections = await Promise.all(besides.map((server) => server.connections()));
      const ids = new Set(connections.flat().map(({ session }) => session));
      return live() && cast.sessions.every((id) => ids.has(`0x${id.toString(16)}`));
    });
    await cast.calm();
    follower?.thaw();
    await ensemble.ready();
  });

  test("the leading server is killed", async () => {
    const leader = await ensemble.leader();
    await leader.kill();
    const next = await ensemble.leader();
    expect(next).not.toBe(leader);
    await cast.calm();
    await ensemble.startAll();
  });

  test("all servers are restarted", async () => {
    await ensemble.killAll();
    await until("nobody leads", () => cast.leaders.length === 0);
    await ensemble.startAll();
  });

  test("the quorum is lost for longer than sessions last, and returns", async () => {
    const before = cast.sessions;
    const lost = cast.clients.map(({ session }) => session.signal);
    const [one, two] = ensemble.servers;
    await Promise.all([one?.kill(), two?.kill()]);
    await until("every session has ended", () => lost.every((signal) => signal.aborted));
    expect(cast.leaders).toEqual([]);
    await ensemble.startAll();
    await cast.calm();
    expect(cast.sessions.some((id) => before.includes(id))).toBe(false);
    await until("no earlier session owns a node", async () => {
      const owners = [...(await (await ensemble.leader()).ephemerals()).keys()];
      return owners.every((owner) => cast.sessions.includes(BigInt(owner)));
    });
  });

  test("the data is wiped: every client is notified, and fences still increase", async () => {
    const before = [...cast.fences.keys()].map((name) => [name, cast.lastFence(name)] as const);
    const { sessions } = cast;
    await cast.forgetting(async () => {
      await ensemble.wipeAll();
      await until("every client has a new session", () =>
        cast.clients.every(({ session }) => session.live && !sessions.includes(session.id)),
      );
    });
    for (const { session } of cast.clients) expect(session.rewoundFrom).toBeTypeOf("bigint");
    await createPersistent((await cast.clients[0]?.established()) as Session, `${cast.path}/items`);
    await cast.calm();
    for (const [name, fence] of before) expect(cast.lastFence(name), name).toBeGreaterThan(fence);
  });

  test("at the end no call hangs and no node is left", async () => {
    await cast.end();
    expect(cast.wrong).toEqual([]);
    const server = await ensemble.leader();
    await until("its nodes have gone", async () => {
      const paths = [...(await server.ephemerals()).values()].flat();
      return !paths.some((path) => path.startsWith(cast.path));
    });
    await clients.closeAll();
    await until("no ephemeral node is left", async () => (await server.ephemerals()).size === 0);
    await until("no session is left", async () => /^Session Sets \(\d+\)\/\(0\):/m.test(await server.ask("dump")));
  });
});

test("fences increase after a wipe even for a client that had not seen the last one", async () => {
  await using ensemble = await Ensemble.start({ tickTime: 200 });
  const clients = new Clients(ensemble.connectString());
  try {
    const path = ownPath("fence");
    const survivor = await clients.connect({ sessionTimeoutMs: 6_000 }); // after its one read it gets only ping answers
    const leader = await clients.connect({ sessionTimeoutMs: 6_000 });
    await leader.create(path);
    const write = (times: number) => Promise.all(Array.from({ length: times }, () => leader.set(path, "x")));
    await write(400);
    await survivor.exists(path);
    await write(100);
    const before = new LeaderLatch(leader, path);
    await before.start();
    const leadership = await before.awaitLeadership();
    const first = survivor.session;
    await ensemble.killAll();
    await leader.close();
    await ensemble.wipeAll();
    await until("the survivor's session has ended", () => first.signal.aborted);
    const after = new LeaderLatch(survivor, path);
    await after.start();
    expect((await after.awaitLeadership())?.fence).toBeGreaterThan(leadership?.fence ?? 0n);
    await after.close();
  } finally {
    await clients.closeAll();
  }
});
