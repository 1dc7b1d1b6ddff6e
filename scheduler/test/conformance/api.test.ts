import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Client } from "../../src/api/client.ts";
import type { Given } from "../../src/api/contract.ts";
import { limits } from "../../src/base/limits.ts";
import { ApiStage } from "../support/api-stage.ts";
import { said } from "../support/remote-stage.ts";
import { until } from "../support/store-stage.ts";

const stage = new ApiStage();
let api: Client;
let key = "";
beforeAll(async () => {
  await stage.open();
  api = stage.client();
  key = await stage.key("worker");
});
afterAll(() => stage.close());

const command = { argv: ["/usr/bin/true"] };
const daily = { type: "cron", expression: "0 3 * * *", zone: "Europe/Berlin" } as const;

/** Runs the task in a remote worker and ends the run with this verdict. @returns the run's id */
async function ended(task: string, verdict: object = { outcome: "succeeded", result: { n: 1 } }): Promise<number> {
  const session = await stage.join(key, { tasks: [task] });
  const run = await stage.claimed(key, session, task, { big: "x".repeat(2_000) });
  await stage.poll(key, { session, verdicts: [said(run, { startedAgoMs: 5, ...verdict })], leave: true });
  return run.runId;
}

describe("tasks", () => {
  test("are created, read, edited by version, compared and rolled back", async () => {
    const made = await api.createTask({ task: "nightly", options: { command, schedule: daily }, reason: "new" });
    expect(made).toMatchObject({ name: "nightly", version: 1, edited: [], words: expect.stringContaining("03:00") });
    await expect(api.createTask({ task: "nightly", options: { command } })).rejects.toMatchObject({
      code: "TASK_NAME_TAKEN",
    });
    const first = await api.editTask({ task: "nightly", options: { timeout: "2h" }, reason: "slow" }, { ifVersion: 1 });
    expect(first).toEqual({
      name: "nightly",
      version: 2,
      changed: true,
      edited: ["timeoutMs"],
      changes: [{ part: "timeoutMs", was: null, is: 7_200_000 }],
    });
    await expect(api.editTask({ task: "nightly", options: { priority: 9 } }, { ifVersion: 1 })).rejects.toMatchObject({
      code: "TASK_STALE",
      message: expect.stringContaining("version 2, by admin-"),
    });
    await api.editTask({ task: "nightly", options: { priority: 9 } }, { ifVersion: 2 });
    expect(await api.diffTask({ task: "nightly", from: 1 })).toMatchObject({
      from: 1,
      to: 3,
      changes: [{ part: "priority" }, { part: "timeoutMs" }],
    });
    const { items, next } = await api.listTaskVersions({ task: "nightly", limit: 2 });
    expect(items.map(({ version, reason }) => [version, reason])).toEqual([
      [3, ""],
      [2, "slow"],
    ]);
    const rest = await api.listTaskVersions({ task: "nightly", limit: 2, cursor: next as string });
    expect([rest.items.map(({ version }) => version), rest.next]).toEqual([[1], null]);

    const back = await api.revertTask({ task: "nightly", version: 1, reason: "as it was" }, { ifVersion: 3 });
    expect(back).toMatchObject({ version: 4, edited: [] });
    expect((await api.diffTask({ task: "nightly", from: 1, to: 4 })).changes).toEqual([]);
    await api.editTask({ task: "nightly", options: { timeout: "1h", priority: 2 } }, { ifVersion: 4 });
    expect(await api.revertTask({ task: "nightly", parts: ["timeout"] })).toMatchObject({ edited: ["priority"] });
    await expect(api.revertTask({ task: "nightly", parts: ["timeout"] })).rejects.toMatchObject({
      code: "OPTION_INVALID",
    });
    await expect(api.diffTask({ task: "nightly", from: 99 })).rejects.toMatchObject({ code: "VERSION_UNKNOWN" });
    await expect(api.getTask({ task: "none" })).rejects.toMatchObject({ code: "TASK_UNKNOWN" });
    await expect(
      api.createTask({ task: "odd", options: { schedule: { ...daily, expression: "61 * * * *" } } }),
    ).rejects.toMatchObject({ code: "CRON_INVALID" });
  });

  test("have an ETag, and cannot be edited without If-Match", async () => {
    await stage.task("tagged");
    const token = stage.tokens.editor;
    const read = await stage.ask("GET", "/v1/tasks/tagged", { token });
    expect(read.headers.get("etag")).toMatch(/^"1\.[\w-]{16}"$/);
    const edit = (match: string | undefined) =>
      stage.ask("PATCH", "/v1/tasks/tagged", {
        token,
        body: { options: { description: `by ${match}` } },
        headers: match === undefined ? {} : { "if-match": match },
      });
    expect((await edit(undefined)).body).toMatchObject({ status: 428, code: "PRECONDITION_NEEDED" });
    expect((await edit("nonsense")).body).toMatchObject({ status: 400, code: "REQUEST_INVALID" });
    expect((await edit('"9"')).body).toMatchObject({ status: 412, code: "TASK_STALE" });
    const edited = await edit('"1"');
    expect([edited.status, edited.headers.get("etag")]).toEqual([200, '"2"']);
    expect((await edit("*")).status).toBe(200);
  });

  test("are paused with a reason, resumed, and removed", async () => {
    await stage.task("held");
    expect(await api.pauseTask({ task: "held", reason: "the bank is closed" })).toEqual({
      name: "held",
      paused: true,
      running: [],
      held: 0,
      skipped: 0,
    });
    const [paused] = (await api.listTasks({ paused: true })).items;
    expect(paused).toMatchObject({
      name: "held",
      paused: { why: "the bank is closed", by: expect.stringContaining("admin"), until: null },
    });
    expect(await api.resumeTask({ task: "held" })).toMatchObject({ paused: false });
    expect((await api.listTasks({ paused: true })).items).toEqual([]);
    expect(await api.removeTask({ task: "held", reason: "over" })).toBeUndefined();
    await expect(api.getTask({ task: "held" })).rejects.toMatchObject({ code: "TASK_UNKNOWN" });
    const { items } = await api.listAudit({ about: "task", named: "held" });
    expect(items.map(({ act, why }) => [act, why])).toEqual([
      ["remove", "over"],
      ["resume", ""],
      ["pause", "the bank is closed"],
      ["create", ""],
    ]);
  });

  test("are listed by name, in pages, by group and by pattern", async () => {
    for (const name of ["page-a", "page-b", "page-c", "page-d"])
      await stage.task(name, { group: name < "page-c" ? "g1" : "g2" });
    const names: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await api.listTasks({ matching: "page-*", limit: 3, ...(cursor === undefined ? {} : { cursor }) });
      names.push(...page.items.map(({ name }) => name));
      cursor = page.next ?? undefined;
    } while (cursor !== undefined);
    expect(names).toEqual(["page-a", "page-b", "page-c", "page-d"]);
    expect((await api.listTasks({ group: "g2" })).items.map(({ name }) => name)).toEqual(["page-c", "page-d"]);
    await stage.task("page-b", { group: "g1", owner: "payments" });
    expect((await api.listTasks({ owner: "payments" })).items.map(({ name, owner }) => [name, owner])).toEqual([
      ["page-b", "payments"],
    ]);
    expect((await api.listTasks({ owner: "nobody" })).items).toEqual([]);
    await expect(api.listTasks({ cursor: "nonsense" })).rejects.toMatchObject({ code: "REQUEST_INVALID" });
  });

  test("show the upcoming slots and the outcomes of past slots", async () => {
    const since = Date.now();
    await stage.task("ticking", { schedule: { type: "every", everyMs: 200, mode: "rate" } });
    const { slots, paused } = await api.listUpcomingSlots({ task: "ticking", count: 3 });
    expect([slots.length, paused]).toEqual([3, false]);
    await until("slots are in the ledger", async () => (await api.listSlots({ task: "ticking" })).items.length > 5);
    const first = await api.listSlots({ task: "ticking", limit: 3, since: new Date(since - 5_000).toISOString() });
    const second = await api.listSlots({ task: "ticking", limit: 2, cursor: first.next as string });
    const times = [...first.items, ...second.items].map(({ slot }) => Date.parse(slot));
    expect(times).toEqual(times.toSorted((a, b) => b - a));
    expect(new Set(times).size).toBe(5);
    await api.removeTask({ task: "ticking" });
  });

  test("show each range of slots that did not run, even if a page has more ranges than slots", async () => {
    await stage.task("gappy");
    const [task] = await stage.rows("select id from $s.task where name = 'gappy'");
    await stage.rows(
      "insert into $s.slot (task_id, slot_ms, outcome, accepted_ms) select $1, $2::bigint + n * 10000, 1, 0 from generate_series(1, 3) n",
      [task?.id, Date.now() - 60_000],
    );
    await stage.rows(
      "insert into $s.slot_range (task_id, version, from_ms, to_ms, outcome, reason, recorded_ms) select $1, 1, $2::bigint + n * 1000, $2 + n * 1000 + 500, 3, '', 0 from generate_series(11, 29) n",
      [task?.id, Date.now() - 60_000],
    );
    const [items, ranges] = [new Set<string>(), new Set<string>()];
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const page = await api.listSlots({ task: "gappy", limit: 4, ...(cursor === undefined ? {} : { cursor }) });
      for (const { slot } of page.items) expect(items.size).toBe(items.add(slot).size - 1);
      for (const { from } of page.ranges) ranges.add(from);
      cursor = page.next;
    }
    expect([items.size, ranges.size]).toEqual([3, 19]);
  });
});

describe("runs", () => {
  test("are created, read, and show their outcome", async () => {
    await stage.task("echo", { retry: { attempts: 2, delay: 0 } });
    const good = await ended("echo");
    const bad = await ended("echo", {
      outcome: "failed",
      retry: false,
      error: { message: "no such ledger", code: "E1" },
    });
    const run = await api.getRun({ run: good });
    expect(run).toMatchObject({
      run: good,
      state: "succeeded",
      result: { n: 1 },
      payload: { big: expect.any(String) },
      attempts: [],
    });
    expect(await api.getRun({ run: bad })).toMatchObject({
      state: "failed",
      error: { message: "no such ledger", code: "E1" },
      letter: { state: "open", redrivenBy: null },
    });
    const { items } = await api.listRuns({ task: "echo", state: ["failed"] });
    expect(items).toMatchObject([{ run: bad, error: { code: "E1", message: "no such ledger" } }]);
    expect(items[0]).not.toHaveProperty("payload");
    await expect(api.getRun({ run: 10 ** 12 })).rejects.toMatchObject({ code: "RUN_UNKNOWN" });

    const again = await api.rerunRun({ run: bad, reason: "mended" });
    expect(await api.getRun({ run: again.run })).toMatchObject({ source: "manual", redrives: bad });
    await expect(api.rerunRun({ run: again.run })).rejects.toMatchObject({ code: "RUN_STATE" });
    expect(await api.cancelRun({ run: again.run, reason: "no" })).toEqual({ run: again.run, outcome: "cancelled" });
    await expect(api.cancelRun({ run: again.run })).rejects.toMatchObject({ code: "RUN_STATE" });
    await expect(api.decideRun({ run: good, how: "fail" })).rejects.toMatchObject({ code: "RUN_STATE" });
    const audit = await api.listAudit({ about: "run", named: String(again.run) });
    expect(audit.items).toMatchObject([{ act: "cancel", why: "no", after: { outcome: "cancelled" } }]);
  });

  test("are listed from every state, in order, each once, wherever the pages break", async () => {
    await stage.task("many", { group: "nobody", priority: 3 });
    await stage.task("other", { group: "nobody", overlap: "queue" });
    const dues = [-4, -3, -3, -2, -1].map((minutes) => Date.now() + minutes * 60_000);
    const live: number[] = [];
    for (const [at, dueMs] of dues.entries()) {
      const given = { task: at % 2 ? "many" : "other", at: new Date(dueMs).toISOString() };
      live.push((await api.runTask({ ...given, priority: at })).run);
    }
    const future = await api.runTask({ task: "many", in: "1h" });
    const gone = await Promise.all([1, 2, 3].map(async () => (await api.runTask({ task: "many" })).run));
    for (const run of gone) await api.cancelRun({ run });
    const walk = async (given: Parameters<Client["listRuns"]>[0], limit: number) => {
      const runs: number[] = [];
      for (let cursor: string | undefined, page = 0; page < 50; page++) {
        const { items, next } = await api.listRuns({ ...given, limit, ...(cursor === undefined ? {} : { cursor }) });
        expect(items.length).toBeLessThanOrEqual(limit);
        runs.push(...items.map(({ run }) => run));
        if (next === null) return runs;
        cursor = next;
      }
      throw new Error("the list has no end");
    };
    const whole = await walk({}, 200);
    expect(whole.slice(0, live.length)).toEqual(live);
    expect(whole).not.toContain(future.run);
    expect(new Set(whole).size).toBe(whole.length);
    for (const limit of [1, 2, 3]) expect(await walk({}, limit)).toEqual(whole);
    for (const limit of [1, 2, 200]) {
      expect(await walk({ task: "many" }, limit)).toEqual([live[1], live[3], ...gone.toReversed()]);
      expect(await walk({ task: "many", state: ["ready"] }, limit)).toEqual([live[1], live[3], future.run]);
      expect(await walk({ state: ["ready"] }, limit)).toEqual(expect.arrayContaining([future.run]));
      expect(await walk({ state: ["cancelled"], task: "many" }, limit)).toEqual(gone.toReversed());
      expect((await walk({ state: ["held", "ready"] }, limit)).filter((run) => live.includes(run))).toEqual(live);
    }
    const until = new Date((dues[3] as number) - 1).toISOString();
    expect(await walk({ state: ["held", "ready"], until }, 2)).toEqual(live.slice(0, 3));
  });

  test("are enqueued by the thousand, all or none, and a key finds the existing run", async () => {
    await stage.task("bulk", { group: "nobody" });
    const { runs } = await api.enqueueRuns({
      runs: Array.from({ length: 1_000 }, (_, n) => ({ task: "bulk", payload: { n } })),
    });
    expect(new Set(runs.map(({ run }) => run)).size).toBe(1_000);
    expect(runs.map(({ run }) => run)).toEqual(runs.map(({ run }) => run).toSorted((a, b) => a - b));
    const one = { task: "bulk", key: "one" };
    const first = await api.runTask(one);
    expect(await api.runTask(one)).toEqual({ run: first.run, created: false });
    const later = await api.runTask({ ...one, key: "later", in: "1h" });
    const next = await api.runTask({ ...one, key: "later", in: "2h", ifKeyTaken: "replace" });
    expect(next).toEqual({ run: expect.any(Number), created: true, replaced: later.run });
    expect(await api.getRun({ run: later.run })).toMatchObject({ state: "skipped" });
    const keyless = { task: "bulk", ifKeyTaken: "replace" as const };
    await expect(api.runTask(keyless)).rejects.toMatchObject({ code: "OPTION_INVALID" });
    await expect(api.enqueueRuns({ runs: [{ task: "bulk" }, { task: "none" }] })).rejects.toMatchObject({
      code: "TASK_UNKNOWN",
    });
    const tooMany = Array.from({ length: 2_001 }, () => ({ task: "bulk" }));
    await expect(api.enqueueRuns({ runs: tooMany })).rejects.toMatchObject({ code: "REQUEST_INVALID" });
    await expect(api.runTask({ task: "bulk", payload: "x".repeat(300_000) })).rejects.toMatchObject({
      code: "PAYLOAD_TOO_LARGE",
    });
    const nul = await stage.ask("POST", "/v1/tasks/bulk/runs", {
      token: stage.tokens.admin,
      body: '{"payload":"\\u0000"}',
    });
    expect(nul.body).toMatchObject({ status: 400, code: "REQUEST_INVALID" });
  });

  test("return their log in pages, and live while it is written", async () => {
    await stage.task("talking");
    const session = await stage.join(key, { tasks: ["talking"] });
    const run = await stage.claimed(key, session, "talking");
    const say = (...messages: string[]) =>
      stage.poll(key, {
        session,
        logs: messages.map((message) => ({ runId: run.runId, fence: run.fence, message, agoMs: 0 })),
      });
    await say("one", "two", "three");
    const first = await api.listLogs({ run: run.runId, limit: 2 });
    const second = await api.listLogs({ run: run.runId, limit: 2, cursor: first.next as string });
    expect([...first.items, ...second.items].map(({ message }) => message)).toEqual(["one", "two", "three"]);
    const messages = async (look: Omit<Given<"listLogs">, "run">) =>
      (await api.listLogs({ run: run.runId, ...look })).items.map(({ message }) => message);
    expect(await messages({ order: "newest" })).toEqual(["three", "two", "one"]);
    const last = second.items[0]?.id as string;
    expect(await messages({ order: "newest", beside: last, limit: 1 })).toEqual(["two"]);
    expect(await messages({ beside: first.items[0]?.id as string })).toEqual(["two", "three"]);
    for (const beside of ["1(4294967296,1)", "1(1,65536)", "x"])
      await expect(messages({ beside })).rejects.toMatchObject({ code: "REQUEST_INVALID" });
    expect(await messages({ find: "T" })).toEqual(["two", "three"]);
    expect(await messages({ find: "HRE", level: "info" })).toEqual(["three"]);
    expect(await messages({ level: "error" })).toEqual([]);
    expect(await messages({ attempt: 1, find: "T", order: "newest" })).toEqual(["three", "two"]);
    expect(await messages({ attempt: 2 })).toEqual([]);
    const heard: string[] = [];
    const tail = (async () => {
      for await (const event of api.tailLogs({ run: run.runId, after: first.items[0]?.id as string }))
        heard.push(event.type === "line" ? event.line.message : event.state);
    })();
    await until("the tail stands", () => heard.length === 2);
    await say("four");
    await until("the line is heard", () => heard.length === 3);
    await stage.poll(key, { session, verdicts: [said(run)], leave: true });
    await tail;
    expect(heard).toEqual(["two", "three", "four", "succeeded"]);
    await expect(api.listLogs({ run: 10 ** 12 })).rejects.toMatchObject({ code: "RUN_UNKNOWN" });
    const unknown = api.tailLogs({ run: 10 ** 12 })[Symbol.asyncIterator]();
    await expect(unknown.next()).rejects.toMatchObject({ code: "RUN_UNKNOWN" });
  });

  test("with an empty log are streamed at once", async () => {
    const { runId } = await stage.server.enqueue("talking", null, { in: "1d" });
    const over = new AbortController();
    const { status, headers } = await fetch(`${stage.urlOf()}/v1/runs/${runId}/logs/tail`, {
      headers: { authorization: `Bearer ${stage.tokens.viewer}` },
      signal: over.signal,
    });
    over.abort();
    expect([status, headers.get("content-type")]).toEqual([200, expect.stringContaining("event-stream")]);
  });
});

describe("other routes", () => {
  test("dead letters, by reason and singly", async () => {
    await stage.task("dying");
    const run = await ended("dying", { outcome: "failed", error: { message: "disk 7 is full", code: "E7" } });
    const { groups, total } = await api.listDeadGroups({ task: "dying" });
    expect(total).toEqual({ groups: 1, letters: 1 });
    expect(groups).toMatchObject([{ letters: 1, lastRun: run, tasks: ["dying"], reason: { code: "E7" } }]);
    expect((await api.listDeadGroups({ fingerprint: groups[0]?.fingerprint as string })).groups).toEqual(groups);
    expect((await api.listDeadGroups({ fingerprint: "none" })).total).toEqual({ groups: 0, letters: 0 });
    expect((await api.listDeadLetters({ task: "dying" })).items).toMatchObject([{ run, task: "dying" }]);
    const begun = await api.beginOperation({
      kind: "redrive",
      filter: { fingerprint: groups[0]?.fingerprint as string },
    });
    await until("it is redriven", async () => (await api.getRun({ run })).letter?.state === "redriven");
    expect(begun.total).toBe(1);
  });

  test("a backfill", async () => {
    await stage.task("filled", { schedule: { type: "every", everyMs: 3_600_000, mode: "rate" }, group: "nobody" });
    const [from, to] = ["2020-01-01T00:00:00Z", "2020-01-01T05:00:00Z"];
    const begun = await api.beginOperation({ kind: "backfill", filter: { task: "filled" }, range: { from, to } });
    expect(begun).toMatchObject({ total: 6, range: { from: "2020-01-01T00:00:00.000Z", perSecond: null } });
    await until("it is filled", async () => (await api.getOperation({ operation: begun.operation })).done === 6);
    // A statement that is rolled back keeps its number, so numbers have gaps.
    const gap = await stage.rows<{ id: number }>(
      "select nextval(pg_get_serial_sequence('$s.operation', 'id'))::int as id",
    );
    const number = gap[0]?.id as number;
    const { operation } = await api.beginOperation({ kind: "resume", filter: { task: "filled" } });
    const found = async (q: string) => (await api.search({ q })).operations.map((one) => one.operation);
    expect(operation).toBeGreaterThan(number);
    expect(await found(String(number))).toEqual([]);
    expect(await found(String(operation))).toEqual([operation]);
    expect(await found(String(operation + 1))).toEqual([]);
    expect(await found("filled")).toEqual([]);
    await expect(api.beginOperation({ kind: "backfill", filter: { task: "filled" } })).rejects.toMatchObject({
      code: "OPTION_INVALID",
    });
  });

  test("calendars, with versions", async () => {
    const days = { zone: "UTC", weekend: [0, 6], holidays: ["2030-12-25"] };
    expect(await api.setCalendar({ calendar: "de", ...days, reason: "new" }, { ifVersion: 0 })).toMatchObject({
      version: 1,
      tasks: [],
    });
    const ics =
      "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//t//t//EN\r\nBEGIN:VEVENT\r\nUID:1\r\nDTSTAMP:20260101T000000Z\r\nDTSTART;VALUE=DATE:20270101\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";
    const second = await api.setCalendar({ calendar: "de", ...days, ics }, { ifVersion: 1 });
    expect(second).toMatchObject({ version: 2, holidays: ["2027-01-01", "2030-12-25"], notices: [] });
    const odd = { calendar: "odd", ...days, ics: ics.replace("UID:1", "RRULE:RSCALE=HEBREW;FREQ=YEARLY") };
    await expect(api.setCalendar({ ...odd, strict: true }, { ifVersion: 0 })).rejects.toMatchObject({
      code: "CALENDAR_INVALID",
      message: expect.stringContaining("line 5, RRULE: RSCALE=HEBREW"),
    });
    const message = expect.stringContaining("RSCALE=HEBREW is not supported");
    expect((await api.setCalendar(odd, { ifVersion: 0 })).notices).toEqual([{ line: 5, message }]);
    await api.removeCalendar({ calendar: "odd" });
    await expect(api.setCalendar({ calendar: "de", ...days }, { ifVersion: 1 })).rejects.toMatchObject({
      code: "CALENDAR_STALE",
    });
    expect(await api.getCalendar({ calendar: "de", version: 1 })).toMatchObject({ holidays: ["2030-12-25"] });
    expect((await api.listCalendars()).items.map(({ name }) => name)).toEqual(["de"]);
    await api.removeCalendar({ calendar: "de" });
    await expect(api.getCalendar({ calendar: "de" })).rejects.toMatchObject({ code: "CALENDAR_UNKNOWN" });
    const [removal] = (await api.listAudit({ about: "calendar", named: "de", act: "remove" })).items;
    expect(removal).toMatchObject({ before: { zone: second.zone, holidays: second.holidays }, after: null });
  });

  test("nodes, workers, terms, and search results", async () => {
    const cluster = await api.getCluster();
    expect(cluster).toMatchObject({ node: stage.server.node, leader: { node: stage.server.node } });
    expect((await api.listNodes()).items).toMatchObject([{ node: stage.server.node, leads: true, silent: false }]);
    const session = await stage.join(key, { name: "needle-worker" });
    const { items } = await api.listWorkers({ group: "default" });
    expect(items).toContainEqual(expect.objectContaining({ node: "needle-worker", sessionId: session, held: 0 }));
    expect((await api.listGroups()).items).toContainEqual(expect.objectContaining({ name: "default", limit: null }));
    expect(await api.limitGroup({ group: "default", limit: 900 })).toMatchObject({ changed: true });
    await expect(api.limitGroup({ group: "default", limit: 0 })).rejects.toMatchObject({ code: "OPTION_INVALID" });
    await expect(api.limitGroup({ group: "none-such", limit: 1 })).rejects.toMatchObject({ code: "GROUP_UNKNOWN" });
    await api.limitGroup({ group: "default", limit: null, reason: "enough" });
    expect((await api.listAudit({ about: "group" })).items).toMatchObject([
      { act: "limit", before: 900, after: null, why: "enough" },
      { before: null, after: 900 },
    ]);
    expect((await api.listTerms({ limit: 1 })).items).toMatchObject([{ term: cluster.term, ended: null }]);
    await stage.task("find-the-needle");
    const found = await api.search({ q: "needle" });
    expect(found).toMatchObject({ tasks: [{ name: "find-the-needle" }], workers: [{ node: "needle-worker" }] });
    const run = await api.runTask({ task: "find-the-needle", in: "1h" });
    expect((await api.search({ q: String(run.run) })).runs).toMatchObject([{ run: run.run }]);
    expect((await api.search({ q: "100%_\\" })).tasks).toEqual([]);
    await stage.poll(key, { session, leave: true });
  });

  test("events, as they happen", async () => {
    await stage.task("live");
    const over = new AbortController();
    const heard: { type: string; run?: { run: number } }[] = [];
    const following = (async () => {
      try {
        for await (const event of api.followEvents({ task: "live" }, { signal: over.signal })) heard.push(event);
      } catch (error) {
        if (!over.signal.aborted) throw error;
      }
    })();
    await until("the stream stands", () => heard.length > 0);
    const run = await ended("live");
    await until("the end is heard", () => heard.some((event) => event.type === "ended" && event.run?.run === run));
    await stage.task("another-task");
    await until("the change is heard", () => heard.some(({ type }) => type === "tasks"));
    over.abort();
    await following;
    expect(heard.filter((event) => event.type === "ended")).toHaveLength(1);
  });

  test("event streams, up to the server's limit", async () => {
    const over = new AbortController();
    const stream = (by: typeof api) => by.followEvents({}, { signal: over.signal })[Symbol.asyncIterator]();
    const users = (["viewer", "operator", "editor", "admin"] as const).map((role) => stage.client(role));
    for (const by of users) {
      await Promise.all(Array.from({ length: limits.streamsPerUser }, () => stream(by).next()));
      const more = stream(by).next();
      if (by === users.at(-1)) await expect(more).rejects.toMatchObject({ code: "SERVER_BUSY" });
      else await expect(more, "of one user, whatever is left").rejects.toMatchObject({ code: "STREAMS_TAKEN" });
    }
    over.abort();
    await until("there is room again", async () => {
      const one = api.followEvents()[Symbol.asyncIterator]();
      // The server refuses further streams until it has noticed that the earlier ones were closed.
      const next = await one.next().catch(() => undefined);
      await one.return?.();
      return next !== undefined;
    });
  });

  test("a request that does not match the contract is refused, naming the wrong part", async () => {
    const token = stage.tokens.admin;
    for (const [method, path, body, told] of [
      ["GET", "/v1/runs?limit=0", undefined, "limit"],
      ["GET", "/v1/runs?limit=many", undefined, "limit"],
      ["GET", "/v1/runs?nonsense=1", undefined, "nonsense"],
      ["GET", "/v1/runs?state=odd", undefined, "state"],
      ["GET", "/v1/runs/abc", undefined, "run"],
      ["GET", "/v1/tasks/a?x=1", undefined, "x"],
      ["POST", "/v1/runs", { runs: [{ task: "a", nonsense: 1 }] }, "nonsense"],
      ["POST", "/v1/runs", { runs: [{ task: "a", durability: "sometimes" }] }, "durability"],
      ["POST", "/v1/runs", "{", "JSON"],
      ["GET", "/v1/runs?since=yesterday", undefined, "since"],
      ["GET", `/v1/search?q=${encodeURIComponent("a\0b")}`, undefined, "NUL"],
    ] as const) {
      const { body: problem } = await stage.ask(method, path, { token, ...(body === undefined ? {} : { body }) });
      expect([path, problem]).toMatchObject([
        path,
        { status: 400, code: "REQUEST_INVALID", detail: expect.stringContaining(told) },
      ]);
    }
  });
});
