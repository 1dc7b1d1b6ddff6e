import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { limits } from "../../src/base/limits.ts";
import { cron } from "../../src/schedule/schedule.ts";
import { ApiStage } from "../support/api-stage.ts";
import { until } from "../support/store-stage.ts";

const stage = new ApiStage();
beforeAll(async () => {
  await stage.open();
});
afterAll(() => stage.close());

test("a worker key has a maximum of live sessions; workers of another key can still join", async () => {
  const [mine, other] = [await stage.key("mine"), await stage.key("other")];
  const first = await stage.join(mine);
  const [{ keyId } = { keyId: 0 }] = await stage.rows<{ keyId: number }>(
    'select key_id as "keyId" from $s.session where id = $1',
    [first],
  );
  // Adds sessions up to the maximum number of workers per key; they count as live for a minute.
  await stage.rows(
    `insert into $s.session (node, role, host, pid, version, timeout_ms, started_ms, seen_ms, groups, labels, key_id, instance)
     select 'many-' || n, 'worker', '', 1, '', 60000, $2, $2, '{}', '{}', $1, '' from generate_series(2, $3::int) n`,
    [keyId, Date.now(), limits.sessionsPerKey],
  );
  for (let again = 0; again < 2; again++)
    expect(await stage.post(mine, { join: { name: "one-more" } })).toMatchObject({
      status: 429,
      body: { code: "KEY_SESSIONS" },
    });
  expect((await stage.post(mine, { join: { name: "many-7" } })).body.code, "a name that is taken").toBe(
    "NODE_NAME_TAKEN",
  );
  expect(await stage.join(other)).toBeGreaterThan(0);
  await stage.poll(mine, { session: first, leave: true });
  expect(await stage.join(mine), "one has left").toBeGreaterThan(0);
});

describe("the enqueue quota of the API", () => {
  beforeAll(async () => {
    for (const task of ["ours/a", "ours/b", "theirs/a", "plain"]) await stage.task(task, { group: "nobody" });
  });
  const admin = () => stage.client();
  const enqueue = (client: ReturnType<typeof admin>, ...tasks: string[]) =>
    client.enqueueRuns({ runs: tasks.map((task) => ({ task })) });
  const refused = (message: RegExp) => ({ code: "QUOTA_EXCEEDED", message: expect.stringMatching(message) });
  const countOf = async (task: string) => (await admin().listRuns({ task })).items.length;
  const mine = async (client: ReturnType<typeof admin>) =>
    (await client.listQuotas()).items.map(({ kind, name, used }) => [kind, name, used]);

  test("of a namespace limits runs per minute: a request is accepted or refused as a whole", async () => {
    const set = { kind: "namespace", name: "ours", enqueues: 3, reason: "shares" } as const;
    expect(await admin().setQuota(set)).toMatchObject({ enqueues: 3, waiting: null, bytes: null, changed: true });
    expect(await admin().setQuota(set)).toMatchObject({ changed: false });
    const one = await admin().getQuota({ kind: "namespace", name: "ours" });
    expect((await admin().listQuotas()).items).toContainEqual(one);
    expect(one).toMatchObject({ enqueues: 3, used: { enqueues: 0 }, changed: { why: "shares" } });
    await expect(admin().getQuota({ kind: "user", name: "ours" })).rejects.toMatchObject({ code: "QUOTA_UNKNOWN" });
    await enqueue(admin(), "ours/a", "ours/b");
    await expect(enqueue(admin(), "ours/a", "plain", "ours/b")).rejects.toMatchObject({
      ...refused(/the namespace "ours" may enqueue 3 runs a minute by a server, and has enqueued 2/),
      hint: expect.stringMatching(/^Try again in \d+ s\./),
    });
    expect(await countOf("plain"), "nothing of it was stored").toBe(0);
    await admin().runTask({ task: "ours/a" });
    const { status, body } = await stage.ask("POST", "/v1/tasks/ours%2Fa/runs", {
      token: stage.tokens.admin,
      body: {},
    });
    expect([status, body.code]).toEqual([429, "QUOTA_EXCEEDED"]);
    await expect(enqueue(admin(), "ours/a", "ours/a", "ours/a", "ours/a")).rejects.toMatchObject({
      hint: expect.stringContaining("fewer at once"),
    });
    await enqueue(admin(), "theirs/a", "plain");
    expect(await mine(admin())).toMatchObject([["namespace", "ours", { enqueues: 3, waiting: null, bytes: null }]]);
    const { items } = await admin().listAudit({ about: "cluster", named: "quota of namespace ours" });
    expect(items).toMatchObject([{ act: "limit", why: "shares", before: null, after: { enqueues: 3 } }]);
  });

  test("of a user counts enqueues of all the user's tokens, and does not affect other users", async () => {
    await admin().setQuota({ kind: "user", name: "*", enqueues: 2 });
    const [one, other] = [await stage.token("operator"), await stage.token("operator")].map((token) =>
      stage.clientOf(token),
    );
    if (!one || !other) throw new Error("there are two");
    await enqueue(one, "plain", "plain");
    await expect(enqueue(one, "plain")).rejects.toMatchObject(refused(/^the user "operator-/));
    await enqueue(other, "plain");
    await admin().setQuota({ kind: "user", name: "*" });
    await enqueue(one, "plain");
    expect((await mine(admin())).map(([kind, name]) => [kind, name])).toEqual([["namespace", "ours"]]);
  });

  test("of waiting runs in a namespace uses the store's count plus the enqueues since then", async () => {
    await admin().setQuota({ kind: "namespace", name: "theirs", waiting: 3 });
    await enqueue(admin(), "theirs/a", "theirs/a");
    await expect(enqueue(admin(), "theirs/a")).rejects.toMatchObject(
      refused(/the namespace "theirs" has 3 runs that wait, of 3 at most/),
    );
    const [first] = (await admin().listRuns({ task: "theirs/a" })).items;
    await admin().cancelRun({ run: first?.run ?? 0 });
    // A change of the quota drops the cached counts, which otherwise happens at the end of a second.
    await admin().setQuota({ kind: "namespace", name: "theirs", waiting: 3, bytes: 100_000 });
    const large = { task: "theirs/a", payload: Array.from({ length: 9_000 }, (_, n) => n * 7_919) };
    await expect(admin().enqueueRuns({ runs: [large, large] })).rejects.toMatchObject({ code: "QUOTA_EXCEEDED" });
    await expect(admin().runTask({ ...large, payload: [large.payload, large.payload] })).rejects.toMatchObject(
      refused(/the payloads that wait in the namespace "theirs" take \d+ bytes, of 100000 at most/),
    );
    await enqueue(admin(), "theirs/a");
    const [, [, , used] = []] = await mine(admin());
    expect(used).toMatchObject({ waiting: 3, bytes: expect.any(Number) });
  });

  test("is shown to the user or namespace it limits, and set by a global admin", async () => {
    await admin().setQuota({ kind: "user", name: "somebody", enqueues: 1_000 });
    await admin().setQuota({ kind: "namespace", name: "*", enqueues: 1_000 });
    const theirs = stage.clientOf(await stage.token("admin", { where: ["theirs"] }));
    expect((await mine(theirs)).map(([kind, name]) => [kind, name])).toEqual([
      ["namespace", "*"],
      ["namespace", "theirs"],
    ]);
    await expect(theirs.setQuota({ kind: "namespace", name: "theirs" })).rejects.toMatchObject({
      code: "ACCESS_DENIED",
    });
    for (const [kind, name, given] of [
      ["user", "ann", { waiting: 5 }],
      ["namespace", "two words", { enqueues: 5 }],
    ] as const)
      await expect(admin().setQuota({ kind, name, ...given })).rejects.toMatchObject({ code: "OPTION_INVALID" });
  });
});

describe("a quota", () => {
  const admin = () => stage.client();
  const exceeded = { code: "QUOTA_EXCEEDED" };
  const usedOf = async (kind: string, name: string) =>
    (await admin().listQuotas()).items.find((row) => row.kind === kind && row.name === name)?.used;

  test("counts a rerun, and the runs of an operation when it begins", async () => {
    await stage.task("again/a", { group: "nobody" });
    await stage.task("again/hourly", { group: "nobody", schedule: cron("0 0 * * * *") });
    await admin().setQuota({ kind: "namespace", name: "again", enqueues: 3 });
    const { run } = await admin().runTask({ task: "again/a" });
    await admin().cancelRun({ run });
    await admin().cancelRun({ run: (await admin().rerunRun({ run })).run });
    expect(await usedOf("namespace", "again")).toMatchObject({ enqueues: 2 });

    const states = ["cancelled" as const];
    for (const filter of [
      { task: "again/a", states },
      { namespaces: ["again"], states },
    ])
      await expect(admin().beginOperation({ kind: "rerun", filter })).rejects.toMatchObject(exceeded);
    const range = { from: new Date(Date.now() - 3 * 86_400_000).toISOString() };
    const backfill = { kind: "backfill", filter: { task: "again/hourly" } } as const;
    await expect(admin().beginOperation({ ...backfill, range })).rejects.toMatchObject(exceeded);
    expect((await admin().listOperations()).items, "none was begun").toEqual([]);
    await admin().beginOperation({ kind: "cancel", filter: { task: "again/a" } });
    // At one run in a hundred seconds, the backfill counts as one enqueue in this minute.
    await admin().beginOperation({ ...backfill, range: { ...range, perSecond: 0.01 } });
    expect(await usedOf("namespace", "again")).toMatchObject({ enqueues: 3 });
    await expect(admin().rerunRun({ run })).rejects.toMatchObject(exceeded);
  });

  test("of history is compared with the leader's estimate of runs and their log lines", async () => {
    await stage.task("logs/a", { group: "nobody" });
    await stage.task("logs", { group: "nobody" });
    const stored = async () => (await stage.store.quotas.taken("logs", 10)).history;
    const { run } = await admin().runTask({ task: "logs/a" });
    await admin().cancelRun({ run });
    await stage.rows(
      `insert into $s.run_log (run_id, attempt, at_ms, level, message)
       select $1, 1, $2, 30, n || ':' || repeat(md5(n::text), 30) from generate_series(1, 1000) n`,
      [run, Date.now()],
    );
    const measure = () => stage.store.quotas.measureHistory(Date.now(), 600_000);
    await measure();
    await admin().setQuota({ kind: "namespace", name: "logs", history: 3_000_000 });
    expect(await stored(), "not estimated before there was a quota of it").toBe(0);
    await measure();
    const bytes = await stored();
    expect(bytes).toBeGreaterThan(400_000);
    expect(bytes).toBeLessThan(2_000_000);
    await admin().runTask({ task: "logs/a" });
    await until("the server read it", async () => (await usedOf("namespace", "logs"))?.history === bytes);

    await stage.rows("update $s.run_log set message = message || message || message || message where run_id = $1", [
      run,
    ]);
    await measure();
    expect(await stored(), "within ten minutes of the last").toBe(bytes);
    await admin().setQuota({ kind: "namespace", name: "logs", history: 1_000 });
    await measure();
    await expect(admin().runTask({ task: "logs/a" })).rejects.toMatchObject({
      ...exceeded,
      message: expect.stringMatching(/the history of the namespace "logs" takes some \d+ bytes, of 1000 at most/),
    });
    await admin().runTask({ task: "logs" });
    await admin().setQuota({ kind: "namespace", name: "logs" });
    await admin().runTask({ task: "logs/a" });
  });

  test("of a user limits the streams a user may have on a server, below the default", async () => {
    const api = stage.clientOf(await stage.token("viewer"));
    const { user } = await api.getMe();
    await admin().setQuota({ kind: "user", name: user, streams: 1 });
    const over = new AbortController();
    const stream = () => api.followEvents({}, { signal: over.signal })[Symbol.asyncIterator]().next();
    await stream();
    await expect(stream()).rejects.toMatchObject({ code: "STREAMS_TAKEN" });
    expect(await usedOf("user", user)).toMatchObject({ streams: 1, enqueues: 0 });
    over.abort();
  });

  test("of a worker key limits its sessions and the runs its workers start", async () => {
    const key = await stage.key("quota-key");
    await stage.task("parent");
    await admin().setQuota({ kind: "key", name: "quota-key", sessions: 1, enqueues: 2 });
    const session = await stage.join(key, { tasks: ["parent"] });
    expect(await stage.post(key, { join: { name: "one-more" } })).toMatchObject({ body: { code: "KEY_SESSIONS" } });
    const { runId, fence } = await stage.claimed(key, session, "parent");
    const begin = async (...names: string[]) => {
      const children = names.map((name) => ({ task: "parent", key: name }));
      const { spawned = [], refused } = await stage.poll(key, { session, spawns: [{ runId, fence, children }] });
      return [spawned.length, ...refused.map(({ code }) => code)];
    };
    expect(await begin("a", "b")).toEqual([1]);
    expect(await begin("c")).toEqual([0, "QUOTA_EXCEEDED"]);
    expect(await usedOf("key", "quota-key")).toMatchObject({ sessions: 1, enqueues: 2 });
    await admin().setQuota({ kind: "key", name: "*", sessions: 1 });
    const other = await stage.key("quota-other");
    await stage.join(other);
    expect(await stage.post(other, { join: { name: "again-one-more" } })).toMatchObject({
      body: { code: "KEY_SESSIONS" },
    });
    await admin().setQuota({ kind: "key", name: "*" });
    const viewer = stage.client("viewer");
    expect(
      (await viewer.listQuotas()).items.filter(({ kind }) => kind === "key"),
      "not who may list keys",
    ).toEqual([]);
    await expect(admin().setQuota({ kind: "key", name: "quota-key", bytes: 5 })).rejects.toMatchObject({
      code: "OPTION_INVALID",
    });
  });
});
