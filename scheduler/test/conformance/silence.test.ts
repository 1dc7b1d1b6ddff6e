import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { systemRandom } from "../../src/base/random.ts";
import { joinCluster } from "../../src/coordination/membership.ts";
import { Database } from "../../src/store/postgres/database.ts";
import { openPostgres } from "../../src/store/postgres/postgres.ts";
import type { Store } from "../../src/store/store.ts";
import { StoreClock } from "../../src/store/store-clock.ts";
import { StoreProxy } from "../support/proxy.ts";
import { everyPostgres } from "../support/servers.ts";
import { openStage, recordingLog, type Stage, until } from "../support/store-stage.ts";

/**
 * Tests a network that drops all packets without closing connections. The operating system would notice this only after a quarter of an
 * hour.
 */
describe.each(everyPostgres())("a network that silently drops all packets, on $title", (server) => {
  const answerMs = 1_000;
  let stage: Stage;
  let proxy: StoreProxy;
  let store: Store;

  beforeAll(async () => {
    stage = await openStage(server);
  });
  afterAll(() => stage.close());
  beforeEach(async () => {
    proxy = await StoreProxy.before(server.url);
    const { schema } = stage;
    store = await openPostgres({ url: proxy.url, schema, connectionsMax: 2, answerMs });
  });
  afterEach(async () => {
    await proxy.close();
    await store.close();
  });

  const beats = (session: number) =>
    store.sessions.beat(session, stage.nowMs).then(
      ({ alive }) => alive,
      () => false,
    );

  it.each([
    ["a connection left", 1],
    ["every connection at work", 2],
  ])("gives up a heartbeat, and with it all calls that have waited as long: %s", async (_, working) => {
    const session = await stage.session();
    const task = await stage.task(`silence-${working}`);
    const listening = new AbortController();
    let heard = 0;
    const listened = store.signals.listen(({ kind }) => {
      if (kind === "resync") heard++;
    }, listening.signal);
    await until("the listener to listen", () => heard > 0);
    const both = async () => (await Promise.all([beats(session), beats(session)])).every((alive) => alive);
    await until("two connections to stand", both);
    const before = heard;
    proxy.hang();
    const enqueued = Array.from({ length: working }, () => store.runs.enqueue([stage.write(task)], stage.nowMs));
    await expect(store.sessions.beat(session, stage.nowMs)).rejects.toMatchObject({
      code: "STORE_UNREACHABLE",
      message: expect.stringContaining("timeout"),
    });
    proxy.reopen();
    await until("a heartbeat to be answered", () => beats(session));
    for (const [answer] of await Promise.all(enqueued)) expect(answer).toMatchObject({ created: true });
    expect((await stage.one("select count(*) as n from $s.run where task_id = $1", [task.taskId])).n).toBe(working);
    await until("the listener to listen anew", () => heard > before);
    listening.abort();
    await listened;
  });

  describe("in the middle of a transaction that holds a limit's lock", () => {
    const limit = "set local idle_in_transaction_session_timeout = '200ms'";
    const { log, lines } = recordingLog();
    let database: Database;
    let gate: string;
    beforeEach(async () => {
      const { schema } = stage;
      const { taskId } = await stage.task("gated", { overlap: "queue" });
      gate = `select task_id from ${schema}.gate where task_id = ${taskId} for update`;
      const surroundings = { clock: systemClock, random: systemRandom, log };
      database = new Database({ url: proxy.url, schema, connectionsMax: 1, ...surroundings });
    });
    afterEach(() => database.close());

    it("the server ends it, and other transactions get the lock", async () => {
      let limits: unknown;
      let isSilent = false;
      const silent = database
        .transaction(async (client) => {
          ({ rows: limits } = await client.query("show idle_in_transaction_session_timeout"));
          expect((await client.query(gate)).rows).toHaveLength(1);
          await client.query(limit);
          proxy.hang();
          isSilent = true;
          await client.query("select 1");
        })
        .catch((error) => error);
      await until("it to fall silent", () => isSilent);
      await until("the lock to be free", async () => (await stage.rows(`${gate} skip locked`)).length === 1);
      expect(limits).toEqual([{ idle_in_transaction_session_timeout: "10s" }]);
      proxy.heal();
      expect(await silent).toMatchObject({ code: "STORE_UNREACHABLE" });
    });

    it("a process that was only frozen gets an error, and tries again", async () => {
      let tries = 0;
      const rows = await database.persist(() =>
        database.transaction(async (client) => {
          await client.query(gate);
          if (++tries > 1) return (await client.query(gate)).rows;
          await client.query(limit);
          // Blocks the event loop, so that nothing is read for 600 ms, as in a suspended process.
          Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 600);
          return (await client.query(gate)).rows;
        }),
      );
      expect({ tries, found: rows.length }).toEqual({ tries: 2, found: 1 });
      expect(lines.find(({ message }) => message.includes("the store is away"))?.fields).toMatchObject({
        code: "STORE_UNREACHABLE",
      });
    });
  });

  it("a node declared dead meanwhile rejoins as soon as the network is back, on new connections", async () => {
    const join = async (node: string, by: Store, timeoutMs: number) => {
      const identity = { node, role: "node" as const, host: "here", pid: process.pid, version: "0", timeoutMs };
      const clocks = { clock: systemClock, storeClock: new StoreClock(systemClock) };
      return joinCluster({ store: by, ...clocks, identity, beatMs: 500, log: recordingLog().log });
    };
    const cutOff = await join("cut-off", store, 4_000);
    const other = await join("other", stage.store, 20_000);
    const members = async () => (await stage.store.sessions.members()).members.map(({ node }) => node).sort();
    try {
      await until("it to lead", () => cutOff.term() !== null);
      const rejoined: number[] = [];
      cutOff.onRejoin((lost) => rejoined.push(lost));
      const before = cutOff.sessionId;
      proxy.hang();
      await until("it to be taken for dead", async () => !(await members()).includes("cut-off"));
      expect(cutOff.trusted()).toBe(false);
      await until("the other to lead", () => other.term() !== null);
      proxy.reopen();
      await until("it to join again", () => rejoined.length > 0 && cutOff.trusted());
      expect(rejoined[0]).toBe(before);
      expect(cutOff.sessionId).toBeGreaterThan(before);
      expect(await members()).toContain("cut-off");
    } finally {
      await cutOff.leave("the test is over");
      await other.leave("the test is over");
    }
  });
});
