import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeSecretKey } from "../../src/access/secrets/secret-keys.ts";
import { every } from "../../src/index.ts";
import { type Carillon, carillon } from "../../src/library/carillon.ts";
import { worker } from "../../src/library/remote-worker.ts";
import type { Run } from "../../src/run/handler.ts";
import type { RunRecord } from "../../src/run/run-record.ts";
import { ApiStage } from "../support/api-stage.ts";
import { postgres } from "../support/servers.ts";
import { type Line, recordingLog, until } from "../support/store-stage.ts";

// The value is long enough that it cannot occur by chance.
const value = 'canary-7f3a "quoted" tail-9d1c5e07b2';
const pin = "4815162342108";
const forms = [
  value,
  "canary-7f3a",
  "tail-9d1c5e07b2",
  pin,
  JSON.stringify(value).slice(1, -1),
  Buffer.from(value).toString("base64"),
];
const [oldKey, newKey] = [makeSecretKey(), makeSecretKey()];
const stage = new ApiStage();
let tower: Carillon;
const logs: { lines: Line[] }[] = [];
const answers: string[] = [];
const received: IncomingHttpHeaders[] = [];
const receiver = createServer((request, response) => {
  received.push(request.headers);
  const status = request.url === "/no" ? 400 : 200;
  // On an error, the response ends in the middle of the secret value.
  const said = JSON.stringify({ you: request.headers.authorization, pad: "x".repeat(400) });
  response.writeHead(status, { "content-type": "application/json" }).end(status === 200 ? said : said.slice(0, 20));
});
const make = (secretKeys: string | string[], more: object = {}) => {
  const { log, lines } = recordingLog();
  logs.push({ lines });
  return carillon({ store: postgres().url, schema: stage.schema, handleSignals: false, log, secretKeys, ...more });
};

/** Returns every row of every table of the schema as text. pg_dump is not used, because it refuses a server that is newer than itself. */
async function dumped(): Promise<string> {
  const tables = await stage.rows<{ name: string }>(
    "select oid::regclass::text as name from pg_class where relnamespace = '$s'::regnamespace and relkind = 'r'",
  );
  expect(tables.map(({ name }) => name)).toContain(`${stage.schema}.secret_version`);
  const texts = await Promise.all(
    tables.map(({ name }) => stage.rows<{ row: string }>(`select t::text as row from ${name} t`)),
  );
  return texts.flatMap((rows) => rows.map(({ row }) => row)).join("\n");
}

beforeAll(async () => {
  process.env.CARILLON_SECRET_KEYS = oldKey;
  await stage.open();
  delete process.env.CARILLON_SECRET_KEYS;
  await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
  const { port } = receiver.address() as AddressInfo;
  tower = make([oldKey], { scheduler: false, httpTasks: { allow: ["127.0.0.1"] }, groups: ["default"] });
  const http = (path: string) => ({
    url: `http://127.0.0.1:${port}${path}`,
    headers: { authorization: "Bearer {{secret:pin}}" },
  });
  tower.task("calls", { http: http("/yes") });
  tower.task("is-refused", { http: http("/no") });
  tower.task("leaks", {}, async (run: Run) => {
    const [secret, number] = [await run.secret("bank"), await run.secret("pin")];
    run.log.info(`it is ${secret}`, { secret, nested: [{ [secret]: Number(number) }] });
    run.progress({ secret });
    const kept: unknown[] = [];
    for (const expose of [() => run.saveState({ secret }), () => run.spawn("calls", { secret })])
      kept.push(await expose().catch((error: { code: string }) => error.code));
    return { secret, number: Number(number), kept, length: secret.length };
  });
  tower.task("throws", {}, async (run: Run) => {
    throw new Error(`${"x".repeat(1_990)}${await run.secret("bank")}`);
  });
  tower.task("other", {}, (run: Run) => run.secret("bank"));
  tower.task("billing/other", {}, (run: Run) => run.secret("pin"));
  tower.task("curious", {}, async (run: Run) => {
    const errors: unknown[] = [];
    for (const name of ["theirs", "nosuch"])
      errors.push(await run.secret(name).catch(({ code, message }) => [code, message.replace(name, "NAME")]));
    return errors;
  });
  tower.task("older", {}, (run: Run) => run.secret("rotated", { version: 1 }));
  await tower.start();
});
afterAll(async () => {
  await tower.stop();
  await stage.close();
  await new Promise((resolve) => receiver.close(resolve));
});

const ended = async (task: string): Promise<RunRecord> => {
  const { runId } = await tower.run(task);
  let found: RunRecord | undefined;
  await until(`${task} has ended`, async () => {
    found = await stage.store.runs.find(runId);
    return found.endedMs !== null;
  });
  return found as RunRecord;
};
const ask = async (...given: Parameters<ApiStage["ask"]>) => {
  const answer = await stage.ask(...given);
  answers.push(JSON.stringify(answer.body ?? null));
  return answer;
};
const admin = () => ({ token: stage.tokens.admin });
const set = (name: string, given: string, more: object = {}) =>
  ask("PUT", `/v1/secrets/${name}`, { ...admin(), body: { value: given, reason: "the bank asks", ...more } });

describe("secrets", () => {
  it("are set, listed, versioned and removed without ever being shown, and invalid ones are refused", async () => {
    expect(await set("bank", value, { tasks: ["leaks", "throws", "remote"] })).toMatchObject({
      status: 200,
      body: { name: "bank", version: 1, tasks: ["leaks", "throws", "remote"] },
    });
    expect((await set("pin", pin)).body).toMatchObject({ version: 1, tasks: null });
    for (const n of [1, 2, 3]) await set("rotated", `${value} ${n}`);
    const { body } = await ask("GET", "/v1/secrets/rotated", admin());
    expect(body.versions.map(({ version, kept }: { version: number; kept: boolean }) => [version, kept])).toEqual([
      [3, true],
      [2, true],
      [1, false],
    ]);
    expect((await ask("GET", "/v1/secrets?limit=2", { token: stage.tokens.editor })).body).toMatchObject({
      items: [{ name: "bank" }, { name: "pin" }],
      next: expect.any(String),
    });
    for (const wrong of ["short", "", "with a \0 in it", "x".repeat(40_000)])
      expect((await set("bank", wrong)).status).toBe(400);
    expect((await set("{{no}}", value)).body.code).toBe("SECRET_INVALID");
    // The parser's error message would contain the beginning of a body that is not valid JSON.
    const broken = { ...admin(), headers: { "content-type": "application/json" }, body: `{"value": ${value}` };
    expect((await stage.ask("PUT", "/v1/secrets/bank", broken)).status).toBe(400);
    expect((await ask("DELETE", "/v1/secrets/none", admin())).body.code).toBe("SECRET_UNKNOWN");
    expect((await ask("PUT", "/v1/secrets/bank", { token: stage.tokens.editor, body: { value } })).status).toBe(403);
    const audit = await ask("GET", "/v1/audit?about=secret", admin());
    expect(audit.body.items).toHaveLength(5);
    expect(audit.body.items.at(-1)).toMatchObject({ act: "create", named: "bank", why: "the bank asks", before: null });
  });

  it("are passed to runs of tasks that may use them, and redacted from everything the run writes", async () => {
    const { result, progress, error, runId } = await ended("leaks");
    expect([error, result]).toEqual([
      null,
      {
        secret: "[secret bank]",
        number: "[secret pin]",
        length: value.length,
        kept: ["SECRET_EXPOSED", "SECRET_EXPOSED"],
      },
    ]);
    expect([null, { secret: "[secret bank]" }]).toContainEqual(progress);
    let lines = await stage.store.runs.logs(runId, 10);
    await until("its log is there", async () => {
      lines = await stage.store.runs.logs(runId, 10);
      return lines.length > 0;
    });
    expect(lines).toMatchObject([{ message: "it is [secret bank]", fields: { secret: "[secret bank]" } }]);
    expect(JSON.stringify((await ended("throws")).error)).toMatch(/xxx\[secret bank\]/);
    // A schedule of the task has access to the secret through its task's name.
    await tower.schedules.set("leaks", "weekly", every("1w"));
    expect((await ended("leaks:weekly")).result).toMatchObject({ secret: "[secret bank]" });
    for (const task of ["other", "billing/other"])
      expect((await ended(task)).error).toMatchObject({ code: "SECRET_FORBIDDEN" });
    await set("theirs", value, { tasks: ["billing/pay"] });
    const [theirs, nosuch] = (await ended("curious")).result as unknown[][];
    expect(theirs, "of another namespace: as if there were none").toEqual(nosuch);
    expect(theirs?.[0]).toBe("SECRET_UNKNOWN");
    expect((await ask("DELETE", "/v1/secrets/theirs", admin())).status).toBe(204);
    expect((await ended("older")).error).toMatchObject({ code: "SECRET_UNKNOWN" });
  });

  it("are sent in an HTTP task's headers, and an echo of them is kept out of its result and error", async () => {
    expect((await ended("calls")).result).toMatchObject({ body: { you: "Bearer [secret pin]" } });
    expect(received.at(-1)?.authorization).toBe(`Bearer ${pin}`);
    expect((await ended("is-refused")).error).toMatchObject({ code: "HTTP_REFUSED" });
    await expect(tower.save({ ...(await stage.store.tasks.byName("calls")).definition })).resolves.toBeDefined();
    const header = { url: "https://example.com", headers: { x: "{{secret:no such name}}" } };
    expect(() => make([]).task("bad", { http: header })).toThrow(expect.objectContaining({ code: "SECRET_INVALID" }));
  });

  it("reach a remote worker for the claim it has, and for no other", async () => {
    const key = await stage.key("remote", ["far"]);
    await stage.task("remote", { group: "far" });
    const { log, lines } = recordingLog();
    logs.push({ lines });
    const far = worker({ server: stage.urlOf(), key, log, handleSignals: false });
    far.task("remote", async (run: Run) => {
      const secret = await run.secret("bank");
      run.log.info(secret);
      return { secret, length: secret.length };
    });
    await far.start();
    try {
      const { error, result } = await ended("remote");
      expect([error, result]).toEqual([null, { secret: "[secret bank]", length: value.length }]);
    } finally {
      await far.stop();
    }
    const session = await stage.join(key, { tasks: ["remote"] });
    const held = await stage.claimed(key, session, "remote");
    const wish = (fence: number, name = "bank") =>
      stage.poll(key, { session, secretOf: { runId: held.runId, fence, name } });
    expect((await wish(held.fence)).secret).toMatchObject({ name: "bank", value });
    for (const [fence, name] of [
      [held.fence - 1, "bank"],
      [held.fence, "nothing"],
    ] as const) {
      const answer = await wish(fence, name);
      expect([answer.secret, answer.refused.map(({ part }) => part)]).toEqual([undefined, ["secret"]]);
    }
    await stage.poll(key, { session, leave: true });
  });

  it("are rewrapped with a new key without being decrypted, after which the old key is not needed", async () => {
    const without = make([newKey], { scheduler: false, worker: false });
    const { store } = await without.open();
    const sealed = () => stage.rows("select sealed from $s.secret_version order by secret_id, version");
    const before = await sealed();
    const change = { author: "test", reason: "", nowMs: 1 };
    const { Secrets } = await import("../../src/access/secrets/secrets.ts");
    const { SecretKeys } = await import("../../src/access/secrets/secret-keys.ts");
    const rewrap = (...keys: string[]) => new Secrets(store.secrets, new SecretKeys(keys)).rewrap(change, 3);
    await expect(rewrap(newKey)).rejects.toMatchObject({ code: "SECRET_KEY_MISSING" });
    expect(await rewrap(newKey, oldKey)).toEqual({ rewrapped: 3, left: 1 });
    expect(await rewrap(newKey, oldKey)).toEqual({ rewrapped: 1, left: 0 });
    expect(await sealed()).toEqual(before);
    const [{ runId, fence } = { runId: 0, fence: 0 }] = await stage.rows<{ runId: number; fence: number }>(
      `insert into $s.run (id, task_id, group_id, version, state, due_ms, created_ms, priority, gate, after_end, source, fence)
       select 900000001, id, group_id, version, 3, 0, 0, 5, 0, false, 0, 900000001 from $s.task where name = 'leaks'
       returning id as "runId", fence`,
    );
    const open = (...keys: string[]) =>
      new Secrets(store.secrets, new SecretKeys(keys)).open({ runId, fence }, "bank", null);
    expect(await open(newKey)).toBe(value);
    await expect(open(oldKey)).rejects.toMatchObject({ code: "SECRET_KEY_MISSING" });
    await stage.rows(
      "update $s.secret_version set sealed = (select sealed from $s.secret_version where secret_id <> v.secret_id and sealed is not null limit 1) from $s.secret_version v where v.secret_id = secret_version.secret_id and secret_version.secret_id = (select id from $s.secret where name = 'pin')",
    );
    await expect(
      new Secrets(store.secrets, new SecretKeys([newKey])).open({ runId, fence }, "pin", null),
    ).rejects.toMatchObject({ code: "SECRET_INVALID" });
    await stage.rows("delete from $s.run where id = 900000001");
    await without.stop();
  });

  it("do not appear in a dump of the database, in an API answer, or in a log", async () => {
    await ask("DELETE", "/v1/secrets/rotated?reason=over", admin());
    for (const path of ["/v1/runs", "/v1/tasks", "/v1/audit", "/v1/secrets", "/v1/dead-letters"])
      await ask("GET", path, admin());
    const keyed = { ...admin(), headers: { "idempotency-key": "once" }, body: { value } };
    // This server has only the old key, which it still uses to encrypt.
    expect((await ask("PUT", "/v1/secrets/bank", keyed)).status).toBe(200);
    const dump = await dumped();
    expect(dump).toContain("[secret bank]");
    const written = [dump, ...answers, JSON.stringify(logs.map(({ lines }) => lines)), JSON.stringify(stage.lines)];
    for (const form of forms) for (const text of written) expect(text.includes(form), form).toBe(false);
    for (const key of [oldKey, newKey]) expect(dump.includes(key)).toBe(false);
  });
});
