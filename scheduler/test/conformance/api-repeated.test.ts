import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Client } from "../../src/api/client.ts";
import { CarillonError } from "../../src/base/errors.ts";
import { silentLog } from "../../src/base/log.ts";
import { Repeated } from "../../src/http/repeated.ts";
import { ApiStage } from "../support/api-stage.ts";
import { until } from "../support/store-stage.ts";

const stage = new ApiStage();
let api: Client;
beforeAll(async () => {
  await stage.open();
  api = stage.client();
});
afterAll(() => stage.close());

describe("a request with an idempotency key", () => {
  const post = (headers: Record<string, string>, body: object = {}, token = stage.tokens.operator) =>
    stage.ask("POST", "/v1/tasks/once/runs", { token, headers, body });
  beforeAll(() => stage.task("once", { group: "nobody" }));

  test("is executed once, however often it is repeated, and gets the first answer again", async () => {
    const headers = { "idempotency-key": "k-1" };
    const answers = await Promise.all(Array.from({ length: 5 }, () => post(headers)));
    for (const { status, body } of answers) if (status !== 201) expect(body.code).toBe("IDEMPOTENCY_BUSY");
    const [made] = answers.filter(({ status }) => status === 201);
    const again = await post(headers);
    expect([again.status, again.body]).toEqual([201, made?.body]);
    expect(again.headers.get("idempotency-replayed")).toBe("true");
    expect((await api.listRuns({ task: "once", state: ["ready"] })).items).toHaveLength(1);
    expect((await post(headers, { priority: 1 })).body).toMatchObject({ status: 422, code: "IDEMPOTENCY_MISMATCH" });
    expect((await post(headers, {}, stage.tokens.admin)).body.run).not.toBe(made?.body.run);
    expect((await post({ "idempotency-key": "with space" })).status).toBe(400);
  });

  test("finds the run that an earlier request made before its server died unanswered", async () => {
    const headers = { "idempotency-key": "k-2" };
    const made = await post(headers);
    // Simulates a node that died after the commit of the run and before that of the stored response.
    await stage.rows("update $s.idempotent_answer set status = null, answer = null, begun_ms = 0 where key = 'k-2'");
    const again = await post(headers);
    expect(again.body.run).toBe(made.body.run);
    await stage.rows("update $s.idempotent_answer set status = null, begun_ms = $1 where key = 'k-2'", [
      Date.now() + 1e6,
    ]);
    expect((await post(headers)).body).toMatchObject({ code: "IDEMPOTENCY_BUSY" });
  });

  test("whose result is unknown reuses its reserved run numbers, for as long as answers are kept", async () => {
    const repeated = new Repeated(stage.store.answers, silentLog);
    const who = { kind: "user", userId: 1, user: "ann", token: null, role: null, grants: [] } as const;
    const request = { route: "runTask", given: {}, ifVersion: null };
    const drawn: number[][] = [];
    const ask = (nowMs: number) =>
      repeated.once(
        {
          who: { ...who, namespaces: null, scopes: null, temporary: false, provided: false },
          key: "k-4",
          request,
          runs: 1,
          secret: false,
          nowMs,
        },
        async ({ runIds }) => {
          drawn.push(runIds);
          throw new CarillonError("STORE_UNREACHABLE", "the store went away");
        },
      );
    const [nowMs, dayMs] = [Date.now(), 86_400_000];
    await expect(ask(nowMs)).rejects.toMatchObject({ code: "STORE_UNREACHABLE" });
    await stage.store.access.sweep(nowMs + dayMs - 120_000);
    await expect(ask(nowMs + 1)).rejects.toMatchObject({ code: "STORE_UNREACHABLE" });
    expect(drawn[1]).toEqual(drawn[0]);
  });

  test("begins one operation, and frees its key if no change was made", async () => {
    const begin = (filter: object, idempotencyKey: string) =>
      api.beginOperation({ kind: "cancel", filter, reason: "bulk" }, { idempotencyKey });
    await expect(begin({}, "k-3")).rejects.toMatchObject({ code: "FILTER_EMPTY" });
    const first = await begin({ task: "once" }, "k-3");
    await stage.rows("update $s.idempotent_answer set status = null, begun_ms = 0 where key = 'k-3'");
    expect((await begin({ task: "once" }, "k-3")).operation).toBe(first.operation);
    expect(await api.previewOperation({ kind: "cancel", filter: { all: true } })).toMatchObject({
      total: expect.any(Number),
    });
    await until("it is done", async () => (await api.getOperation({ operation: first.operation })).state === "done");
    expect((await api.listOperations({ limit: 1 })).items).toMatchObject([
      { operation: first.operation, reason: "bulk" },
    ]);
    await expect(api.stopOperation({ operation: first.operation })).rejects.toMatchObject({ code: "OPERATION_STATE" });
    const audit = await api.listAudit({ about: "operation", named: String(first.operation) });
    expect(audit.items).toMatchObject([{ act: "cancel", why: "bulk", after: { filter: { task: "once" } } }]);
  });
});
