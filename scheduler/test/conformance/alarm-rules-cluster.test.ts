import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { RuleContent } from "../../src/alarms/stored-rules.ts";
import { Rules, summaryMs } from "../support/alarm-rules-stage.ts";
import { everyPostgres } from "../support/servers.ts";
import { change, until } from "../support/store-stage.ts";

const minute = 60_000;
const day = 86_400_000;
const everywhere = { everywhere: true };

describe.each(everyPostgres())("alarm rules about the cluster, on $title", (server) => {
  const rules = new Rules();
  beforeAll(() => rules.open(server));
  afterEach(() => rules.clean());
  afterAll(() => rules.stage.close());

  const create = (content: RuleContent) =>
    rules.create("of-cluster", { ...content, channels: ["ops"], scope: everywhere });
  const texts = async () => (await rules.alarms.open()).map(({ subject, text }): [string, string] => [subject, text]);
  const sent = () => rules.sent("of-cluster");
  const cleared = async (atMs: number) => {
    await rules.look(atMs);
    expect(await texts()).toEqual([]);
    await rules.look(atMs + summaryMs);
    expect((await sent()).at(-1)).toBe("ops cleared");
    await rules.stage.rows("delete from $s.alarm_outbox");
  };
  /** A process with this name and coordination service. */
  const node = async (name: string, coordination: string | null = null): Promise<number> => {
    const identity = { node: name, role: "node", host: "here", pid: 1, version: "0", timeoutMs: 6_000 } as const;
    const settings = { retentionMs: 1, horizonMs: 1, claimAheadMs: 1, coordination };
    const opened = await rules.stage.store.sessions.open({ ...identity, settings }, rules.t);
    if (!("sessionId" in opened)) throw new Error("the name is taken");
    return opened.sessionId;
  };
  const sessions = () => rules.stage.store.sessions;

  it("statements of a node take long: it is named; a second node is news; a node that is quick or gone is not named", async () => {
    const [one, two, fine] = [await node("one"), await node("two"), await node("fine")];
    await create({ kind: "store", longer: "1s" });
    await sessions().beat(one, rules.t, { waitMs: 1_001 });
    await sessions().beat(two, rules.t, { waitMs: 1_000 });
    await sessions().beat(fine, rules.t);
    await rules.look(rules.t);
    expect(await texts()).toEqual([["", "half of the last statements took longer: one 1s"]]);
    await sessions().beat(two, rules.t, { waitMs: 2_500 });
    await rules.look(rules.t + summaryMs);
    expect(await texts()).toEqual([["", "half of the last statements took longer: two 2s500ms, one 1s"]]);
    expect(await sent()).toEqual(["ops raised", "ops summary"]);
    await sessions().beat(one, rules.t, { waitMs: 3 });
    await rules.look(rules.t + 2 * summaryMs);
    await sessions().end(two, null, rules.t, "stopped");
    expect(await sent(), "fewer nodes are no news").toHaveLength(2);
    await cleared(rules.t + 2 * summaryMs + 1);
    for (const id of [one, fine]) await sessions().end(id, null, rules.t, "stopped");
  });

  it("a node has lost its coordination service for longer than a limit; one without such a service has not", async () => {
    const [lost, back, never] = [await node("lost", "zk:2181"), await node("back", "zk:2181"), await node("never")];
    await create({ kind: "coordination", after: "2m" });
    for (const id of [lost, back]) await sessions().beat(id, rules.t - 1, { witnessed: true });
    for (const id of [lost, back, never]) await sessions().beat(id, rules.t);
    await sessions().beat(back, rules.t + 1, { witnessed: true });
    await sessions().beat(back, rules.t + 2);
    await sessions().beat(lost, rules.t + minute);
    await rules.look(rules.t + 2 * minute);
    expect(await texts(), "not for longer than the limit").toEqual([]);
    await rules.look(rules.t + 2 * minute + 1);
    expect(await texts()).toEqual([["", "without coordination service: lost for 2m"]]);
    await sessions().beat(lost, rules.t + 2 * minute + 1, { witnessed: true });
    await sessions().beat(back, rules.t + 2 * minute + 1, { witnessed: true });
    await cleared(rules.t + 2 * minute + 2);
    for (const id of [lost, back, never]) await sessions().end(id, null, rules.t, "stopped");
  });

  it("a transaction keeps dead rows; a young one is not found", async () => {
    const client = await rules.stage.sql.connect();
    try {
      await create({ kind: "snapshot", after: "1h" });
      await client.query("begin isolation level repeatable read");
      const { rows } = await client.query("select pg_backend_pid() as pid, txid_current()");
      await rules.look(rules.t);
      expect(await texts()).toEqual([]);
      const soon: RuleContent = { kind: "snapshot", after: "1s", channels: ["ops"], scope: everywhere };
      await rules.alarms.replaceRule("of-cluster", soon, change(rules.t), null);
      // Transactions of other tests on this server may be older for a time.
      const found = new RegExp(`^dead rows are kept by: .*transaction \\(.+, pid ${rows[0].pid}\\) for \\d`);
      await until("the transaction is found", async () => {
        await rules.look(rules.t + 1);
        return (await texts()).some(([subject, text]) => subject === "" && found.test(text));
      });
      await client.query("rollback");
      let atMs = rules.t + 1;
      await until("no transaction is old during a summary interval", async () => {
        atMs += summaryMs;
        await rules.look(atMs);
        return (await sent()).at(-1) === "ops cleared";
      });
    } finally {
      client.release(true);
    }
  });

  it("a token, a worker key and a certificate expire soon; one that lives shortly or was revoked is not found", async () => {
    const { workers } = rules.stage.store;
    const at = (days: number) => rules.t + days * day;
    await rules.stage.rows(
      `insert into $s.user_account (name, hash, role, created_ms, created_by) values ('ann', '', 'admin', 1, 'test')`,
    );
    const token = (name: string, fromMs: number, toMs: number) =>
      rules.stage.rows(
        `insert into $s.token (user_id, name, hash, role, created_ms, expires_ms)
         select id, $1, '', 'admin', $2, $3 from $s.user_account where name = 'ann'`,
        [name, fromMs, toMs],
      );
    await token("soon", at(-60), at(10));
    await token("later", at(-60), at(15));
    await token("short", at(-1), at(10));
    await token("revoked", at(-60), at(10));
    await rules.stage.rows("update $s.token set revoked_ms = 1 where name = 'revoked'");
    await token("forgotten", at(-90), at(-8));
    const key = { groups: ["g"], hash: Buffer.from("k"), createdBy: "test" };
    await workers.createKey({ ...key, name: "edge", expiresMs: at(13) }, at(-60));
    await workers.createKey({ ...key, name: "lasting", hash: Buffer.from("l") }, at(-60));
    const id = await node("sealed");
    await rules.stage.rows(`update $s.session set settings = settings || $2 where id = $1`, [
      id,
      JSON.stringify({
        certificates: [
          { file: "/etc/ours.pem", beginsMs: at(-60), endsMs: at(-1) },
          { file: "/etc/short.pem", beginsMs: at(-1), endsMs: at(10) },
          { file: "/etc/of-older-version.pem", endsMs: at(14) - 1 },
        ],
      }),
    ]);
    await create({ kind: "expiring", before: "14d" });
    await rules.look(rules.t);
    const iso = (days: number) => new Date(at(days)).toISOString();
    expect(await texts()).toEqual([
      [
        "",
        `expires soon or has expired: certificate /etc/ours.pem of sealed at ${iso(-1)}, token soon of ann at ${iso(10)}, worker key edge at ${iso(13)}, certificate /etc/of-older-version.pem of sealed at ${new Date(at(14) - 1).toISOString()}`,
      ],
    ]);
    await rules.stage.rows("update $s.token set revoked_ms = $1 where name = 'soon'", [rules.t]);
    await workers.createKey({ ...key, name: "other", hash: Buffer.from("o"), expiresMs: at(60) }, rules.t);
    await rules.stage.rows("update $s.worker_key set revoked_ms = $1 where name = 'edge'", [rules.t]);
    await sessions().end(id, null, rules.t, "stopped");
    await cleared(rules.t + 1);
  });
});
