import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type CarillonOptions, fsPayloads, type PayloadStore } from "../../src/index.ts";
import { ownSchema } from "../support/own-schema.ts";
import { postgres } from "../support/servers.ts";
import { until } from "../support/store-stage.ts";

const wait = { timeout: "60s" } as const;
const large = { text: "x".repeat(100_000) };

describe("payloads and results outside the store", () => {
  const { schema, database, make } = ownSchema(postgres().url, "payloads", { drain: 0 });
  let folder = "";
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "payloads-"));
  });
  afterAll(() => rm(folder, { recursive: true }));
  const kept = async () => (await readdir(folder, { recursive: true })).filter((path) => path.includes("/"));

  test("the row has a reference, and the handler and the caller get the value; small values stay in the row", async () => {
    const tower = make({ payloads: { store: fsPayloads(folder) } });
    const task = tower.task("a", {}, (_, payload: unknown) => payload);
    tower.task("chain", {}, (run, payload: { text?: string } | null) =>
      payload === null ? run.continueAs(large) : payload.text?.length,
    );
    await tower.start();
    const small = await task.enqueue({ text: "small" });
    expect(await small.result(wait)).toEqual({ text: "small" });
    expect(await kept()).toEqual([]);
    const handle = await task.enqueue(large);
    expect(await handle.result(wait)).toEqual(large);
    expect(await handle.status()).toMatchObject({ payload: large, result: large });
    expect(await kept()).toHaveLength(2);
    const { rows } = await database.query(`select payload, result from ${schema}.run_history where id = $1`, [
      handle.runId,
    ]);
    const reference = { "carillon:stored": expect.stringMatching(/^\d{4}-\d\d-\d\d\/[-\da-f]{36}$/) };
    expect(rows).toEqual([{ payload: reference, result: reference }]);
    const again = await tower.runs.retry(handle.runId);
    expect(await again.result(wait)).toEqual(large);
    await tower.enqueue("chain", null);
    const links = { task: "chain", states: ["succeeded" as const] };
    await until("both links", async () => (await tower.runs.count(links)).runs === 2);
    const [last] = (await tower.runs.list(links)).items;
    expect((await tower.runs.get(last?.runId as number)).result).toBe(100_000);
  });

  test("with a codec, the object contains the codec's output", async () => {
    const codec = {
      encode: (text: string) => Buffer.from(text).toString("base64"),
      decode: (text: string) => Buffer.from(text, "base64").toString(),
    };
    const before = new Set(await kept());
    const tower = make({ payloads: { store: fsPayloads(folder), over: 1_000 }, codec });
    const task = tower.task("a", {}, (_, payload: { text: string }) => payload.text.length);
    await tower.start();
    expect(await (await task.enqueue(large)).result(wait)).toBe(100_000);
    const [path = ""] = (await kept()).filter((one) => !before.has(one));
    expect(JSON.parse(await readFile(join(folder, path), "utf8"))).toEqual({
      "carillon:encoded": codec.encode(JSON.stringify(large)),
    });
  });

  test("a missing, broken or unreadable object, or no payload store: PAYLOAD_STORE_FAILED", async () => {
    const store = fsPayloads(folder);
    const producer = make({ payloads: { store }, worker: false });
    producer.task("a", {}, () => "no");
    await producer.start();
    const gone: PayloadStore = { ...store, get: async () => null };
    const away: PayloadStore = { ...store, get: () => Promise.reject(new Error("the bucket is away")) };
    const broken: PayloadStore = { ...store, get: async () => '{"text": "xyz' };
    const failures: unknown[] = [];
    const given: CarillonOptions[] = [gone, away, broken].map((store) => ({ payloads: { store } }));
    for (const options of [...given, {}]) {
      const { runId } = await producer.enqueue("a", large);
      const tower = make(options);
      tower.task("a", {}, () => "no");
      await tower.start();
      await until("it has failed", async () => (await producer.runs.get(runId)).state === "failed");
      const run = await tower.runs.get(runId);
      expect(run.payload).toEqual({ "carillon:stored": expect.any(String) });
      expect(run.error).toMatchObject({ code: "PAYLOAD_STORE_FAILED" });
      failures.push((run.error as { message: string }).message.replace(/.*?: (?=the bucket|there is)/, ""));
      await tower.stop();
    }
    expect(failures).toEqual([
      expect.stringMatching(/^there is no \d/),
      "the bucket is away",
      expect.stringMatching(/is no JSON outside the store: [-\d]+\/[-\da-f]+$/),
      expect.stringContaining("has no payload store"),
    ]);
  });

  test("a payload that cannot be stored is not enqueued; invalid options are refused", async () => {
    const put = () => Promise.reject(new Error("the bucket is full"));
    const tower = make({ payloads: { store: { ...fsPayloads(folder), put } }, worker: false });
    const task = tower.task("a", {}, () => "no");
    await tower.start();
    await expect(task.enqueue(large)).rejects.toMatchObject({ code: "PAYLOAD_STORE_FAILED" });
    expect((await tower.runs.count()).runs).toBe(0);
    for (const [payloads, path] of [
      [{ store: {} }, "payloads.store"],
      [{ store: fsPayloads(folder), over: "64 kilobytes" }, "payloads.over"],
      [{ store: fsPayloads(folder), over: "1MB" }, "payloads.over"],
    ] as const)
      expect(() => make({ payloads: payloads as never })).toThrow(
        expect.objectContaining({ code: "OPTION_INVALID", path }),
      );
    const blocked = join(folder, "file");
    await writeFile(blocked, "");
    await expect(fsPayloads(blocked).put("2027-03-01/a", "x")).rejects.toThrow();
  });
});
