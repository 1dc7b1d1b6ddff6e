import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { worker } from "../../src/library/remote-worker.ts";
import { ApiStage } from "../support/api-stage.ts";
import { RemoteStage } from "../support/remote-stage.ts";
import { recordingLog, until } from "../support/store-stage.ts";

const labels = { customer: "42", region: "eu" };

describe("labels of a run, over the API", () => {
  const stage = new ApiStage();
  beforeAll(async () => {
    await stage.open();
    await stage.task("work", { group: "nobody", runLabels: { team: "billing" } });
  });
  afterAll(() => stage.close());

  test("are set, shown, and filter lists and operations", async () => {
    const { run } = await stage.client("operator").runTask({ task: "work", labels });
    expect(await stage.client("viewer").getRun({ run })).toMatchObject({ labels: { ...labels, team: "billing" } });
    const { runs } = await stage.client("operator").enqueueRuns({ runs: [{ task: "work", labels }, { task: "work" }] });
    const listed = async (label: string[]) =>
      (await stage.client("viewer").listRuns({ label })).items.map((one) => one.run);
    expect(await listed(["customer:42"])).toEqual([run, runs[0]?.run]);
    expect(await listed(["customer:42", "region:us"])).toEqual([]);
    expect(await listed(["team:billing"])).toHaveLength(3);
    const filter = { labels: { customer: "42" } };
    const preview = await stage.client("operator").previewOperation({ kind: "cancel", filter });
    expect(preview.total).toBe(2);
    const begun = await stage.client("operator").beginOperation({ kind: "cancel", filter });
    expect(begun.filter).toEqual(filter);
    const { groups } = await stage.client("viewer").listDeadGroups({ label: ["customer:42"] });
    expect(groups).toEqual([]);
    await expect(
      stage.client("operator").runTask({ task: "work", labels: { a: "x".repeat(201) } }),
    ).rejects.toMatchObject({ code: "OPTION_INVALID", path: "labels.a" });
  });
});

describe("labels of a run, on a worker without a store", () => {
  const stage = new RemoteStage();
  let key = "";
  beforeAll(async () => {
    await stage.serve();
    key = await stage.key("mine");
    await stage.task("work", {});
  });
  afterAll(() => stage.close());

  test("are readable by the handler", async () => {
    const seen: unknown[] = [];
    const one = worker({ server: stage.urlOf(), key, handleSignals: false, log: recordingLog().log }).task(
      "work",
      (run) => void seen.push(run.labels),
    );
    await one.start();
    await stage.server.enqueue("work", null, { labels });
    await stage.server.enqueue("work", null);
    await until("both", async () => seen.length === 2);
    expect(seen).toEqual(expect.arrayContaining([labels, {}]));
    await one.stop();
  });
});
