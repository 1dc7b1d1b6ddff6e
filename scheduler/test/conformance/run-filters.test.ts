import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Client } from "../../src/api/client.ts";
import type { Given } from "../../src/api/contract.ts";
import { limits } from "../../src/base/limits.ts";
import { namespaceOf } from "../../src/base/namespace.ts";
import type { RunSource } from "../../src/run/run.ts";
import { liveStates, outcomes } from "../../src/run/run.ts";
import type { RunFilter } from "../../src/run/run-record.ts";
import { ApiStage } from "../support/api-stage.ts";

const stage = new ApiStage();
let api: Client;

/** More tasks than the query for runs probes one by one. */
const manyTasks = limits.tasksProbed + 20;
const ended = 9_000;
const live = 1_600;
const sources = ["slot", "enqueue", "manual"] as const;

interface Written {
  run: number;
  task: string;
  group: string;
  state: string;
  source: RunSource;
  key: string | null;
  labels: Record<string, string> | null;
  atMs: number;
}
let written: Written[] = [];
/** Noon of today, because the history has a partition for today. */
const noonMs = Math.floor(Date.now() / 86_400_000) * 86_400_000 + 43_200_000;

beforeAll(async () => {
  await stage.open();
  api = stage.client();
  const groupOf = (task: string) => (task.startsWith("many/") ? "wide" : task.startsWith("few/") ? "narrow" : "alone");
  const names = [...Array.from({ length: manyTasks }, (_, n) => `many/${n}`), "few/a", "few/b", "few/c", "lone"];
  for (const name of names) await stage.task(name, { group: groupOf(name) });
  // Most runs belong to one of many tasks and come from slots; one in forty was enqueued by hand.
  const values = [noonMs, ended, live, manyTasks];
  const drawn = `
    (select f.id from $s.task f where f.name = case when i % 9 = 0 then (array['few/a', 'few/b', 'few/c'])[1 + i / 9 % 3]
       when i % 10 = 1 then 'lone' else 'many/' || (i * 7 % $4::int) end) as task_id,
    case when i % 40 = 0 then 3 when i % 3 = 0 then 2 else 1 end as source, case when i % 5 = 0 then 'k-' || i / 700 end as key,
    case when i % 7 <> 0 then jsonb_build_object('region', (array['eu', 'us'])[1 + i % 2], 'customer', (i * 37 % 1000)::text) end as labels`;
  await stage.rows(
    `insert into $s.run_history (id, due_ms, created_ms, ended_ms, task_id, version, attempt, outcome, priority, source, key, labels)
     select 7000000 + i, $1::bigint - i * 1000, $1, $1::bigint - (i / 3) * 1000, task_id, 1, 1, i % 4, 5, source, key, labels
     from (select i, ${drawn} from generate_series(1, $2::int) i where $3::int > 0) drawn`,
    values,
  );
  await stage.rows(
    `insert into $s.run (id, due_ms, created_ms, task_id, group_id, version, state, priority, source, key, labels)
     select 8000000 + i, $1::bigint + 172800000 + (i / 2) * 1000, $1, d.task_id, f.group_id, 1, case when i % 6 = 0 then 1 else 2 end, i % 10, d.source,
       case when d.source = 2 then 'l-' || i end, d.labels
     from (select i, ${drawn} from generate_series(1, $3::int) i where $2::int > 0) d join $s.task f on f.id = d.task_id`,
    values,
  );
  const states = [...liveStates, ...outcomes];
  const rows = await stage.rows<
    Omit<Written, "group" | "state" | "source" | "atMs"> & { state: number; source: number; at: number }
  >(
    `select r.id::float8 as run, f.name as task, r.state, r.source, r.key, r.labels, r.at::float8 as at from (
       select id, task_id, state, source, key, labels, due_ms as at from $s.run
       union all select id, task_id, outcome + ${liveStates.length}, source, key, labels, ended_ms from $s.run_history) r
     join $s.task f on f.id = r.task_id`,
  );
  written = rows.map(({ run, task, state, source, key, labels, at }) => ({
    run,
    task,
    group: groupOf(task),
    state: states[state] as string,
    source: sources[source - 1] as RunSource,
    key,
    labels,
    atMs: at,
  }));
  expect(written).toHaveLength(ended + live);
});
afterAll(() => stage.close());

const isLive = ({ state }: Written) => (liveStates as readonly string[]).includes(state);
/** Returns true if the task's name matches the pattern. The patterns below have a `*` only at their ends. */
const isLike = (task: string, pattern: string) =>
  pattern.startsWith("*") ? task.includes(pattern.replaceAll("*", "")) : task.startsWith(pattern.replaceAll("*", ""));
/** Returns the ids of the runs that match the filters, in the order in which lists return them. */
function expected({ task, matching, group, namespace, key, source, label, state, since }: Given<"listRuns">): number[] {
  const sinceMs = since === undefined ? Number.MIN_SAFE_INTEGER : Date.parse(since);
  const found = written.filter(
    (run) =>
      (task === undefined || run.task === task) &&
      (matching === undefined || isLike(run.task, matching)) &&
      (group === undefined || run.group === group) &&
      (namespace === undefined || namespaceOf(run.task) === namespace) &&
      (key === undefined || run.key === key) &&
      (source === undefined || run.source === source) &&
      (label ?? []).every((one) => Object.entries(run.labels ?? {}).some((pair) => pair.join(":") === one)) &&
      (state === undefined || (state as string[]).includes(run.state)) &&
      run.atMs >= sinceMs,
  );
  const under = found.filter(isLive).sort((a, b) => a.atMs - b.atMs || a.run - b.run);
  const over = found.filter((run) => !isLive(run)).sort((a, b) => b.atMs - a.atMs || b.run - a.run);
  return [...under, ...over].map(({ run }) => run);
}

async function walk(by: Client, given: Given<"listRuns">): Promise<{ runs: number[]; pages: number }> {
  const runs: number[] = [];
  let pages = 0;
  for (let cursor: string | undefined; ; ) {
    const { items, next } = await by.listRuns({ ...given, ...(cursor === undefined ? {} : { cursor }) });
    runs.push(...items.map(({ run }) => run));
    pages++;
    if (next === null) return { runs, pages };
    cursor = next;
  }
}

const everything = ["paused", "ready", ...outcomes] as const;
const cases: [string, Given<"listRuns">][] = [
  ["a group of few tasks", { group: "narrow" }],
  ["a group of many tasks", { group: "wide", state: ["paused", "failed"] }],
  ["a namespace of few tasks", { namespace: "few" }],
  ["a namespace of one task, by state", { namespace: "default", state: ["ready"] }],
  ["a namespace of many tasks", { namespace: "many", state: ["paused", "cancelled"] }],
  ["a source", { source: "manual" }],
  ["a source within a group of few tasks", { source: "manual", group: "narrow" }],
  ["a source within a namespace of many tasks", { source: "manual", namespace: "many" }],
  [
    "a source of a task, since a time",
    { source: "enqueue", task: "lone", since: new Date(noonMs - 9e5).toISOString() },
  ],
  ["a key of a task", { task: "few/a", key: "k-3" }],
  ["a key of a task by source", { task: "few/a", key: "k-3", source: "enqueue" }],
  ["a label that many runs have", { label: ["region:eu"] }],
  ["a label that few runs have", { label: ["customer:42"] }],
  ["two labels", { label: ["region:us", "customer:43"] }],
  ["a label of a task's runs", { label: ["customer:7"], group: "narrow", task: "few/b" }],
  ["a label within a group of many tasks, by source", { label: ["region:eu"], group: "wide", source: "manual" }],
  ["a label since a time", { label: ["region:us"], since: new Date(noonMs - 9e5).toISOString() }],
  ["a part of the name of few tasks", { matching: "*ew/*" }],
  ["a part of the name of many tasks", { matching: "*y/*", state: ["paused", "failed"] }],
  ["a part of a name within a group", { matching: "*/b*", group: "narrow" }],
  ["a beginning of the name of many tasks, by source", { matching: "many/1*", source: "enqueue" }],
  ["a group and a namespace that share tasks", { group: "narrow", namespace: "few", state: ["succeeded"] }],
  ["a group that the task is in", { group: "narrow", task: "few/b" }],
];

describe("listing runs by", () => {
  test.each(cases)("%s: each match once, in the order of the list, and nothing else", async (_, given) => {
    const asked = { ...given, state: given.state ?? [...everything] };
    const wanted = expected(asked);
    expect(wanted.length, "there is something to find").toBeGreaterThan(0);
    expect((await walk(api, { ...asked, limit: 200 })).runs).toEqual(wanted);
    const { items } = await api.listRuns({ ...asked, limit: 7 });
    expect(items.map(({ run }) => run)).toEqual(wanted.slice(0, items.length));
    // The store and the library, which callers in the process use, must return the same runs.
    const { task, matching, group, namespace, key, source, label, since, state } = asked;
    // The library takes no patterns, because it shows no lists.
    if (matching !== undefined) return;
    const match = {
      ...(task === undefined ? {} : { task }),
      ...(group === undefined ? {} : { group }),
      ...(key === undefined ? {} : { key }),
      ...(source === undefined ? {} : { source }),
      ...(label === undefined ? {} : { labels: Object.fromEntries(label.map((one) => one.split(":"))) }),
    };
    const listed: RunFilter = {
      ...match,
      ...(namespace === undefined ? {} : { namespaces: [namespace] }),
      ...(since === undefined ? {} : { sinceMs: Date.parse(since) }),
      states: state as NonNullable<RunFilter["states"]>,
      limit: 10_000,
    };
    const byStore = (await stage.store.runs.list(listed)).map(({ runId }) => runId);
    expect([...byStore].sort((a, b) => a - b)).toEqual([...wanted].sort((a, b) => a - b));
    const each: number[] = [];
    const filter = { ...match, ...(namespace === undefined ? {} : { namespace }), states: listed.states as never };
    for await (const { runId } of stage.server.runs.each({
      ...filter,
      ...(since === undefined ? {} : { since: new Date(since) }),
    }))
      each.push(runId);
    expect(each).toEqual(wanted);
  });

  test.each([
    ["a group that there is not", { group: "none" }],
    ["a namespace that there is not", { namespace: "none" }],
    ["a pattern that no task is like", { matching: "*none*" }],
    ["a group that the task is not in", { group: "wide", task: "lone" }],
    ["a key that no run has", { task: "lone", key: "none" }],
    ["a label that no run has", { label: ["customer:none"] }],
    ["two labels that no run has together", { label: ["region:eu", "customer:43"] }],
    ["a source that no run of the task has", { task: "lone", source: "join" as const }],
  ])("%s: no match", async (_, given) => {
    expect((await walk(api, given)).runs).toEqual([]);
  });

  test("rare matches: a request reads a limited number of runs, and the next one continues", async () => {
    const older = 25_000;
    const page = await api.listRuns({ source: "join", state: [...everything] });
    expect(page).toEqual({ items: [], next: null });
    await stage.rows(
      `insert into $s.run_history (id, due_ms, created_ms, ended_ms, task_id, version, attempt, outcome, priority, source)
       select 9000000 + i, 1, 1, $1::bigint - 4000000 + i, id, 1, 1, 0, 5, case when i = 1 then 7 else 1 end
       from generate_series(1, $2::int) i, $s.task where name = 'lone'`,
      [noonMs, older],
    );
    const { runs, pages } = await walk(api, { source: "join" });
    expect(runs).toEqual([9_000_001]);
    // A request sends at most ten statements, and each reads at most `endedRunsLookedAt` ended runs.
    expect(pages).toBe(Math.ceil((ended + older) / (10 * limits.endedRunsLookedAt)));
    await stage.rows("delete from $s.run_history where id >= 9000000");
  });

  test("labels: a rare label is found at once, however many runs precede it", async () => {
    const older = 25_000;
    await stage.rows(
      `insert into $s.run_history (id, due_ms, created_ms, ended_ms, task_id, version, attempt, outcome, priority, source, labels)
       select 9000000 + i, 1, 1, $1::bigint - 4000000 + i, id, 1, 1, 0, 5, 1, case when i = 1 then '{"rare": "1"}' end::jsonb
       from generate_series(1, $2::int) i, $s.task where name = 'lone'`,
      [noonMs, older],
    );
    const page = await api.listRuns({ label: ["rare:1"], state: [...everything] });
    expect([page.items.map(({ run, labels }) => [run, labels]), page.next]).toEqual([
      [[9_000_001, { rare: "1" }]],
      null,
    ]);
    await stage.rows("delete from $s.run_history where id >= 9000000");
  });

  test("invalid labels are refused", async () => {
    const refused = { code: "OPTION_INVALID" };
    await expect(api.listRuns({ label: ["a:1", "a:2"] })).rejects.toMatchObject({ ...refused, path: "label" });
    await expect(api.listRuns({ label: ["no name:1"] })).rejects.toMatchObject(refused);
    await expect(api.listRuns({ label: ["a"] })).rejects.toMatchObject({ code: "REQUEST_INVALID" });
    await expect(stage.server.runs.list({ labels: { a: 1 } as never })).rejects.toMatchObject({ path: "labels.a" });
  });

  test("a key alone is refused: it is unique within its task", async () => {
    const refusal = { code: "OPTION_INVALID", path: "key", hint: expect.stringContaining("task") };
    await expect(api.listRuns({ key: "k-3" })).rejects.toMatchObject(refusal);
    await expect(api.listRuns({ key: "k-3", group: "narrow" })).rejects.toMatchObject(refusal);
    await expect(stage.server.runs.list({ key: "k-3" })).rejects.toMatchObject(refusal);
    await expect(stage.store.runs.list({ key: "k-3", limit: 5 })).rejects.toMatchObject(refusal);
    await expect(stage.server.runs.list({ source: "nobody" as never })).rejects.toMatchObject({ path: "source" });
    await expect(stage.server.runs.list({ group: 5 as never })).rejects.toMatchObject({ path: "group" });
  });

  test("a user limited to a namespace: its runs, and no others", async () => {
    const theirs = stage.clientOf(await stage.token("viewer", { where: ["few"] }));
    const all = { state: [...everything], limit: 200 };
    expect((await walk(theirs, all)).runs).toEqual(expected({ namespace: "few" }));
    expect((await walk(theirs, { ...all, group: "wide" })).runs).toEqual([]);
    expect((await walk(theirs, { ...all, source: "manual" })).runs).toEqual(
      expected({ namespace: "few", source: "manual" }),
    );
    await expect(theirs.listRuns({ namespace: "many" })).rejects.toMatchObject({ code: "ACCESS_DENIED" });
  });
});
