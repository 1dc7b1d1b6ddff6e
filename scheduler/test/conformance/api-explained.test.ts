import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Client } from "../../src/api/client.ts";
import { ApiStage } from "../support/api-stage.ts";

const stage = new ApiStage();
let api: Client;
beforeAll(async () => {
  await stage.open();
  api = stage.client("viewer");
});
afterAll(() => stage.close());

const enqueue = async (task: string, options = {}) => (await stage.server.enqueue(task, null, options)).runId;

const codesOf = async (run: number) => (await api.explainRun({ run })).reasons.map(({ code }) => code);

describe("why a claimed run has not started", () => {
  test("does not say that its worker is gone because the task has got another group since", async () => {
    await stage.task("moved", { group: "before" });
    const key = await stage.key("before", ["before"]);
    const { runId } = await stage.claimed(key, await stage.join(key, { groups: ["before"] }), "moved");
    expect(await codesOf(runId)).toEqual(["not-started"]);
    await stage.task("moved", { group: "after" });
    expect(await codesOf(runId)).toEqual(["not-started"]);
  });
});

describe("why runs wait", () => {
  test("names the limit of the group, with the runs that hold it", async () => {
    await stage.task("narrow", { group: "one" });
    await stage.client("operator").limitGroup({ group: "one", limit: 1, reason: "" });
    const key = await stage.key("one", ["one"]);
    const worker = await stage.join(key, { groups: ["one"], tasks: ["narrow"] });
    const { runId: claimed } = await stage.claimed(key, worker, "narrow");
    const { reasons } = await api.explainRun({ run: await enqueue("narrow") });
    expect(reasons[0]).toMatchObject({
      code: "group-limit",
      shown: { group: "one", limit: 1, claimed: 1, by: [{ run: claimed, task: "narrow" }] },
    });
  });

  test("is answered for several runs at once, with the runs that hold the limit", async () => {
    await stage.task("settle", { overlap: "queue", group: "ledgers" });
    const [first, second] = [await enqueue("settle"), await enqueue("settle")];
    const later = await enqueue("settle", { in: "3h" });
    const { runs } = await api.explainRuns({ run: [second, first, later, 888_888_888] });
    expect(runs.map(({ run, state, reasons }) => [run, state, reasons.map(({ code }) => code)])).toEqual([
      [second, "held", ["overlap"]],
      [first, "ready", ["no-worker"]],
      [later, "held", ["not-due", "overlap"]],
    ]);
    expect(runs[0]?.reasons[0]?.shown.by).toEqual([{ run: first, task: "settle", node: null }]);
    expect((await api.explainRun({ run: second })).reasons).toEqual(runs[0]?.reasons);
  });

  test("leaves out runs of other namespaces, and refuses what is not a run", async () => {
    await stage.task("billing/pay");
    await stage.task("shipping/send");
    const [pay, send] = [await enqueue("billing/pay"), await enqueue("shipping/send")];
    const token = await stage.token("viewer", { where: ["billing"] });
    const { runs } = await stage.clientOf(token).explainRuns({ run: [pay, send] });
    expect(runs.map(({ run, reasons }) => [run, reasons.map(({ code }) => code)])).toEqual([[pay, ["workers-hidden"]]]);
    await expect(stage.clientOf(token).explainRun({ run: send })).rejects.toMatchObject({ code: "RUN_UNKNOWN" });
    await expect(api.explainRun({ run: 888_888_888 })).rejects.toMatchObject({ code: "RUN_UNKNOWN" });
    const refused = (query: string) => stage.ask("GET", `/v1/run-reasons?${query}`, { token: stage.tokens.viewer });
    for (const query of ["run=seven", "run=0", Array.from({ length: 101 }, (_, at) => `run=${at + 1}`).join("&")])
      expect((await refused(query)).body).toMatchObject({
        code: "REQUEST_INVALID",
        path: expect.stringMatching(/^run/),
      });
    expect((await refused("run=1")).status).toBe(200);
  });
});
