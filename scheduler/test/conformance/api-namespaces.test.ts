import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hasRole, type Role } from "../../src/access/access.ts";
import { makeSecretKey } from "../../src/access/secrets/secret-keys.ts";
import type { Client } from "../../src/api/client.ts";
import { writes } from "../../src/api/contract/route.ts";
import { type RouteId, routeIds, shapeOf } from "../../src/api/contract.ts";
import { ApiStage } from "../support/api-stage.ts";
import { until } from "../support/store-stage.ts";

const stage = new ApiStage();
let admin: Client;
/** Token of a user who is an admin in `theirs` and has no role in `ours`. */
let stranger = "";
let theirs: Client;
let made = { run: 0, operation: 0, ended: 0, silence: 0, signIn: 0 };

beforeAll(async () => {
  await stage.open({ secretKeys: makeSecretKey() });
  admin = stage.client();
  stranger = await stage.token("admin", { where: ["theirs"] });
  theirs = stage.clientOf(stranger);
  await admin.setCalendar({ calendar: "ours/bank", zone: "UTC", weekend: [0, 6], holidays: [] }, { ifVersion: 0 });
  const options = { command: { argv: ["/usr/bin/true"] }, group: "ours/gpu" };
  await admin.createTask({ task: "ours/settle", options: { ...options, calendar: { name: "ours/bank" } } });
  await admin.createUser({ name: "ours-ann", password: "twelve bells at noon", role: "viewer" });
  await admin.createWorkerKey({ name: "ours/key", groups: ["ours/gpu"] });
  const { run } = await admin.runTask({ task: "ours/settle", in: "1d" });
  const { run: ended } = await admin.runTask({ task: "ours/settle", in: "1d" });
  await admin.cancelRun({ run: ended });
  const { operation } = await admin.beginOperation({ kind: "resume", filter: { task: "ours/settle" } });
  const { silence } = await admin.silenceAlarms({ task: "ours/settle", for: "1h" });
  await admin.createAlarmRule({ name: "ours/failed", kind: "failed", failures: 1 });
  await admin.setSecret({ secret: "ours-hook", value: "a secret of the hook", tasks: ["ours/settle"] });
  await admin.setHook({ hook: "ours/hook", secret: "ours-hook", scheme: "github", task: "ours/settle" });
  const [{ id: signIn }] = (await stage.rows(
    `insert into $s.sign_in (hash, user_id, created_ms, expires_ms)
     select 'ours', id, $1::bigint, $1::bigint + 86400000 from $s.user_account where name = 'ours-ann' returning id`,
    [Date.now()],
  )) as [{ id: number }];
  made = { run, operation, ended, silence, signIn };
});
afterAll(() => stage.close());

const closed = routeIds.filter((routeId) => shapeOf(routeId).policy !== "anyone");
const nobody = 999_999_999;

/** Valid request bodies, so that a refusal can only be due to the caller's rights. */
const bodies: Partial<Record<RouteId, unknown>> = {
  changePassword: { present: "not my password", next: "not my password either" },
  createUser: { name: "ours-user", password: "a long enough password", role: "admin" },
  createWorkerKey: { name: "theirs/key", groups: ["ours/gpu"] },
  createToken: { name: "mine" },
  beginSecondFactor: { password: "not my password" },
  confirmSecondFactor: { code: "000000" },
  removeSecondFactor: { password: "not my password", code: "000000" },
  limitGroup: { limit: 1 },
  setQuota: { enqueues: 1 },
  previewOperation: { kind: "pause", filter: { task: "ours/settle" } },
  checkPayload: { payload: {} },
  beginOperation: { kind: "pause", filter: { namespaces: ["theirs", "ours"] } },
  enqueueRuns: { runs: [{ task: "ours/settle" }] },
  decideRun: { how: "fail" },
  createTask: { options: {} },
  editTask: { options: { priority: 1 } },
  defineTask: { options: {} },
  planBundle: { tasks: [{ task: "ours/settle", options: {} }] },
  applyBundle: {
    tasks: [
      { task: "theirs/new", options: {} },
      { task: "ours/settle", options: {} },
    ],
    plan: "*",
  },
  acknowledgeAlarm: { task: "ours/settle" },
  silenceAlarms: { task: "ours/settle", for: "1h" },
  createAlarmRule: { name: "ours/other", kind: "ended" },
  setAlarmRule: { kind: "ended" },
  setSecret: { value: "a value of a secret" },
  previewHook: { body: {} },
  redeliverEvents: { since: "2026-11-30T00:00:00Z" },
  setHook: { secret: "ours-hook", scheme: "github", task: "theirs/settle" },
  compareCalendar: { zone: "UTC", weekend: [], holidays: [] },
  setCalendar: { zone: "UTC", weekend: [], holidays: [] },
};
const queries: Partial<Record<RouteId, string>> = {
  listErrors: "?since=2026-01-01T00:00:00Z",
  search: "?q=ours",
  diffTask: "?from=1",
  listAuditRows: "?part=chain",
  listRecentRuns: "?task={task}",
  explainRuns: "?run={run}",
  listFiring: "?since=2030-01-01T00:00:00Z&until=2030-01-02T00:00:00Z",
};

type Place =
  | "rule"
  | "channel"
  | "message"
  | "silence"
  | "alarmRule"
  | "hook"
  | "consumer"
  | "secret"
  | "bundle"
  | "task"
  | "calendar"
  | "group"
  | "key"
  | "node"
  | "run"
  | "operation"
  | "user"
  | "signIn"
  | "kind"
  | "name"
  | "token";
const names: Record<Place, [there: string | number, absent: string | number]> = {
  rule: ["failed", "late"],
  channel: ["ours-mail", "ours-none"],
  message: [888_888_881, nobody],
  silence: [0, nobody],
  secret: ["ours-token", "ours-none"],
  alarmRule: ["ours/failed", "ours/absent"],
  hook: ["ours/hook", "ours/absent"],
  consumer: ["webhook/ours", "webhook/absent"],
  bundle: ["ours-files", "ours-none"],
  task: ["ours/settle", "ours/absent"],
  calendar: ["ours/bank", "ours/absent"],
  group: ["ours/gpu", "ours/absent"],
  key: ["ours/key", "ours/absent"],
  node: ["ours-node", "ours-none"],
  run: [0, nobody],
  operation: [0, nobody],
  user: ["ours-ann", "ours-ben"],
  signIn: [0, nobody],
  kind: ["namespace", "user"],
  name: ["ours", "ours-none"],
  // No token of the caller is named, because the request would revoke it.
  token: ["absent", "absent"],
};

/** Kinds of objects with numeric ids. To a caller without the right to see them, the server answers as if they did not exist. */
const isNumbered = (touches: string) => ["run", "operation", "silence"].includes(touches);

async function ask(routeId: RouteId, there: boolean, token: string) {
  const shape = shapeOf(routeId);
  const { run, operation, silence, signIn } = made;
  const at = {
    ...names,
    run: [run, nobody],
    operation: [operation, nobody],
    silence: [silence, nobody],
    signIn: [signIn, nobody],
  } as typeof names;
  const named: string[] = [];
  const path = `${shape.path}${queries[routeId] ?? ""}`.replace(/\{(\w+)\}/g, (_, place: Place) => {
    const name = String(at[place][there ? 0 : 1]);
    named.push(name);
    return encodeURIComponent(name);
  });
  const body = writes(shape) && shape.body ? { body: bodies[routeId] ?? {} } : {};
  const given = { token, ...body, headers: { "if-match": "*" } };
  const { status, body: answer } = await stage.ask(shape.method, path, given);
  // Values of the request that the response repeats are masked, because the caller knows them already.
  const text = named.reduce(
    (told, name) => {
      // A number is masked only as a whole word, because it may also be part of a name.
      const whole = new RegExp(`(?<!\\w)${name.replace(/[^\w]/g, "\\$&")}(?!\\w)`, "g");
      return told.replace(whole, "NAMED");
    },
    JSON.stringify(answer ?? null),
  );
  return { status, code: answer?.code as string | undefined, text };
}

describe("with the credentials of another namespace", () => {
  test("every route refuses, omits or finds nothing, and answers alike whether or not the object exists", async () => {
    const before = (await admin.listAudit({ limit: 1 })).items[0]?.entry;
    const seen = new Set<string>();
    for (const routeId of closed) {
      const { touches, event } = shapeOf(routeId);
      seen.add(touches);
      if (event && touches === "listed") continue;
      const [there, absent] = [await ask(routeId, true, stranger), await ask(routeId, false, stranger)];
      if (touches === "nothing") {
        expect([routeId, there.text]).toEqual([routeId, expect.not.stringMatching(/ours/)]);
        continue;
      }
      expect([routeId, absent]).toEqual([routeId, there]);
      if (touches === "listed") expect([routeId, there.status]).toEqual([routeId, 200]);
      else if (isNumbered(touches))
        expect([routeId, there.status, there.code]).toEqual([
          routeId,
          404,
          touches === "silence" ? "ALARM_UNKNOWN" : `${touches.toUpperCase()}_UNKNOWN`,
        ]);
      else expect([routeId, there.status, there.code]).toEqual([routeId, 403, "ACCESS_DENIED"]);
      const told = touches === "body" ? there.text.replace('namespace \\"ours\\"', "") : there.text;
      expect([routeId, told]).toEqual([
        routeId,
        touches === "listed" || isNumbered(touches) || touches === "cluster"
          ? expect.not.stringMatching(/ours/)
          : expect.not.stringMatching(/ours\/(?:settle|bank|gpu|key)/),
      ]);
    }
    expect(seen.size).toBeGreaterThan(8);
    // All other requests were refused, so the audit log has only the token that the user created for itself.
    const after = (await admin.listAudit({ limit: 10 })).items.filter(({ entry }) => entry > (before as number));
    expect(after.map(({ act, about }) => [act, about])).toEqual([["create", "token"]]);
  });

  test("a lesser role in the right namespace allows only what that role may do", async () => {
    const viewer = await stage.token("viewer", { where: ["ours"] });
    const editor = await stage.token("editor", { where: ["ours"] });
    for (const routeId of closed) {
      const { policy, touches } = shapeOf(routeId);
      if (policy === "signed-in") continue;
      for (const [role, token] of [["viewer", viewer] as const, ["editor", editor] as const]) {
        if (hasRole(role, policy as Role) && touches !== "cluster") continue;
        const { status, code } = await ask(routeId, true, token);
        expect([routeId, role, status, code]).toEqual([routeId, role, 403, "ACCESS_DENIED"]);
      }
    }
  });

  test("live events contain no run of other namespaces", async () => {
    const over = new AbortController();
    const heard: string[] = [];
    const follow = async (by: Client) => {
      try {
        for await (const event of by.followEvents({}, { signal: over.signal }))
          heard.push(event.type === "ended" ? event.run.task : event.type);
      } catch (error) {
        if (!over.signal.aborted) throw error;
      }
    };
    const following = follow(theirs);
    await until("the stream stands", () => heard.includes("resync"));
    await admin.createTask({ task: "theirs/heard", options: { command: { argv: ["/usr/bin/true"] } } });
    const [foreign, own] = [
      await admin.runTask({ task: "ours/settle", in: "1d" }),
      await admin.runTask({ task: "theirs/heard", in: "1d" }),
    ];
    await admin.cancelRun({ run: foreign.run });
    await admin.cancelRun({ run: own.run });
    await until("their own end is heard", () => heard.includes("theirs/heard"));
    over.abort();
    await following;
    expect(heard).not.toContain("ours/settle");
    await expect(theirs.followEvents({ task: "ours/settle" })[Symbol.asyncIterator]().next()).rejects.toMatchObject({
      code: "ACCESS_DENIED",
    });
  });
});

describe("with credentials of the same namespace", () => {
  test("a caller can do what its role allows, and lists contain nothing else", async () => {
    const options = { command: { argv: ["/usr/bin/true"] } };
    for (const task of ["theirs/one", "theirs/two"]) await theirs.createTask({ task, options });
    await theirs.editTask({ task: "theirs/one", options: { priority: 3 } });
    const { run } = await theirs.runTask({ task: "theirs/one", in: "1d" });
    await theirs.enqueueRuns({ runs: [{ task: "theirs/two", in: "1d" }] });
    expect((await theirs.listTasks()).items.map(({ name }) => name)).toEqual(
      expect.arrayContaining(["theirs/one", "theirs/two"]),
    );
    expect(await theirs.getRun({ run })).toMatchObject({ task: "theirs/one" });
    const mine = await theirs.listRuns({ state: ["ready"], limit: 1 });
    expect(mine.items).toHaveLength(1);
    const rest = await theirs.listRuns({ state: ["ready"], cursor: mine.next as string });
    expect([...mine.items, ...rest.items].map(({ task }) => task).sort()).toEqual(["theirs/one", "theirs/two"]);
    expect((await theirs.search({ q: "e" })).tasks.map(({ name }) => name)).not.toContain("ours/settle");
    expect((await theirs.search({ q: String(made.run) })).runs).toEqual([]);
    expect((await theirs.search({ q: String(made.operation) })).operations).toEqual([]);
    expect((await admin.search({ q: String(made.operation) })).operations).toHaveLength(1);
    expect((await admin.listTasks({ namespace: "ours" })).items.map(({ name }) => name)).toEqual(["ours/settle"]);
    await expect(theirs.listTasks({ namespace: "ours" })).rejects.toMatchObject({ code: "ACCESS_DENIED" });
    const key = await theirs.createWorkerKey({ name: "theirs/key", groups: ["theirs/gpu"] });
    expect((await theirs.listWorkerKeys()).items).toMatchObject([{ name: key.name }]);
    expect(await theirs.getMe()).toMatchObject({ role: null, grants: [{ namespace: "theirs", role: "admin" }] });
  });

  test("an operator can silence a task and end that silence, but not a silence beyond its namespace", async () => {
    const operator = stage.clientOf(await stage.token("operator", { where: ["theirs"] }));
    const viewer = stage.clientOf(await stage.token("viewer", { where: ["theirs"] }));
    const { silence } = await operator.silenceAlarms({ task: "theirs/one", for: "1h" });
    await expect(viewer.endSilence({ silence })).rejects.toMatchObject({ code: "ACCESS_DENIED" });
    await operator.endSilence({ silence });
    await expect(operator.endSilence({ silence })).rejects.toMatchObject({ code: "ALARM_UNKNOWN" });
    const whole = await admin.silenceAlarms({ rule: "late", for: "1h" });
    await expect(theirs.endSilence({ silence: whole.silence })).rejects.toMatchObject({ code: "ALARM_UNKNOWN" });
    await expect(theirs.endSilence({ silence: made.silence })).rejects.toMatchObject({ code: "ALARM_UNKNOWN" });
    expect((await admin.listSilences()).silences.map((one) => one.silence)).toEqual([whole.silence, made.silence]);
    await admin.endSilence({ silence: whole.silence });
  });

  test("a worker shared with other namespaces is shown with the caller's groups and tasks only", async () => {
    const key = await stage.key("both", ["ours/gpu", "theirs/gpu"]);
    const tasks = ["ours/settle", "theirs/one"];
    const session = await stage.join(key, { name: "shared-worker", groups: ["ours/gpu", "theirs/gpu"], tasks });
    const seen = async (by: Client) => (await by.listWorkers()).items.find(({ node }) => node === "shared-worker");
    expect(await seen(theirs)).toMatchObject({ groups: ["theirs/gpu"], tasks: ["theirs/one"], settings: null });
    expect(await seen(admin)).toMatchObject({ groups: ["ours/gpu", "theirs/gpu"], tasks });
    await stage.poll(key, { session, leave: true });
  });

  test("a bulk operation is limited to the caller's namespaces for as long as it runs", async () => {
    expect(await theirs.previewOperation({ kind: "pause", filter: { all: true } })).toMatchObject({ total: 3 });
    const { operation, filter } = await theirs.beginOperation({ kind: "pause", filter: { matching: "*t*" } });
    expect(filter).toEqual({ matching: "*t*", namespaces: ["theirs"] });
    await until("it is done", async () => (await theirs.getOperation({ operation })).state === "done");
    expect((await admin.listTasks({ paused: true })).items.map(({ name }) => name)).toEqual(
      expect.not.arrayContaining(["ours/settle"]),
    );
    expect((await theirs.listOperations()).items.map((one) => one.operation)).toEqual([operation]);
    expect((await theirs.listDeadLetters({ namespaces: ["theirs"] })).items).toEqual([]);
    await expect(theirs.listDeadGroups({ namespaces: ["ours"] })).rejects.toMatchObject({ code: "ACCESS_DENIED" });
    const { total } = await admin.previewOperation({ kind: "resume", filter: { namespaces: ["theirs"] } });
    expect(total).toBe(3);
  });

  test("a calendar that is used elsewhere cannot be removed, and the refusal names no task that the caller may not see", async () => {
    const editor = stage.clientOf(await stage.token("editor", { where: ["default"] }));
    const command = { argv: ["/usr/bin/true"] };
    await admin.setCalendar({ calendar: "shared-days", zone: "UTC", weekend: [], holidays: [] }, { ifVersion: 0 });
    await admin.createTask({ task: "third/shares", options: { command, calendar: { name: "shared-days" } } });
    const refusal = () =>
      editor.removeCalendar({ calendar: "shared-days" }).then(
        () => "removed",
        ({ code, message }) => `${code} ${message}`,
      );
    expect(await refusal()).toBe("CALENDAR_USED calendar shared-days is used by tasks of other namespaces (1)");
    await admin.createTask({ task: "own-days", options: { command, calendar: { name: "shared-days" } } });
    expect(await refusal()).toBe("CALENDAR_USED calendar shared-days is used by own-days and 1 more");
  });

  test("a task may use global objects, and none of another namespace", async () => {
    const options = { command: { argv: ["/usr/bin/true"] }, group: "shared" };
    await theirs.createTask({ task: "theirs/uses", options });
    for (const foreign of [{ group: "ours/gpu" }, { calendar: { name: "ours/bank" } }, { after: "ours/settle" }]) {
      const given = { task: "theirs/uses-more", options: { ...options, ...foreign } };
      await expect(theirs.createTask(given)).rejects.toMatchObject({ code: "ACCESS_DENIED" });
      const edit = { task: "theirs/uses", options: foreign };
      await expect(theirs.editTask(edit)).rejects.toMatchObject({ code: "ACCESS_DENIED" });
    }
    // Values that a caller with the required right has set stay valid when a caller without that right edits another option.
    await admin.editTask({ task: "theirs/uses", options: { after: "ours/settle" } });
    expect(await theirs.editTask({ task: "theirs/uses", options: { priority: 2 } })).toMatchObject({ changed: true });
  });
});

describe("a token for certain namespaces", () => {
  test("is valid in those namespaces only, whatever its user may do, and cannot create a wider token", async () => {
    const { secret } = await admin.createToken({ name: "ci", namespaces: ["ours"], role: "editor" });
    const narrow = stage.clientOf(secret);
    expect(await narrow.getMe()).toMatchObject({ role: null, grants: [{ namespace: "ours", role: "editor" }] });
    expect((await narrow.listTasks()).items.map(({ name }) => name)).toEqual(["ours/settle"]);
    await expect(narrow.getTask({ task: "theirs/one" })).rejects.toMatchObject({ code: "ACCESS_DENIED" });
    await expect(narrow.listNodes()).rejects.toMatchObject({ code: "ACCESS_DENIED" });
    for (const more of [{ namespaces: ["theirs"] }, { role: "admin" as const }])
      await expect(narrow.createToken({ name: "more", ...more })).rejects.toMatchObject({ code: "OPTION_INVALID" });
    const heir = await narrow.createToken({ name: "heir" });
    expect(heir).toMatchObject({ namespaces: ["ours"], role: "editor" });
    await expect(stage.clientOf(heir.secret).getTask({ task: "theirs/one" })).rejects.toMatchObject({
      code: "ACCESS_DENIED",
    });
  });

  test("grants are given by a global admin, one per namespace, and apply from the next request on", async () => {
    const password = "eleven bells at noon";
    const grants = [{ namespace: "ours", role: "viewer" as const }];
    const user = await admin.createUser({ name: "gil", password, role: null, grants });
    expect(user).toMatchObject({ role: null, grants, provided: false });
    for (const wrong of [[...grants, ...grants], [{ namespace: "a/b", role: "viewer" as const }]])
      await expect(admin.changeUser({ user: "gil", grants: wrong })).rejects.toMatchObject({ code: "OPTION_INVALID" });
    const signIn = await stage.ask("POST", "/v1/sign-in", { body: { name: "gil", password } });
    const cookie = (signIn.headers.get("set-cookie") ?? "").split(";")[0] as string;
    const pause = () => stage.ask("POST", "/v1/tasks/ours%2Fsettle/pause", { headers: { cookie }, body: {} });
    expect((await pause()).status).toBe(403);
    await admin.changeUser({ user: "gil", grants: [{ namespace: "ours", role: "operator" }], reason: "on call" });
    expect((await pause()).status).toBe(200);
    const [{ before, after } = { before: null, after: null }] = (await admin.listAudit({ about: "user" })).items;
    expect([before, after]).toMatchObject([{ grants }, { grants: [{ role: "operator" }] }]);
    await expect(theirs.createUser({ name: "hal", password, role: "viewer" })).rejects.toMatchObject({
      code: "ACCESS_DENIED",
    });
  });
});
