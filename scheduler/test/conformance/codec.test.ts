import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { carillon, type PayloadCodec } from "../../src/index.ts";
import { worker } from "../../src/library/remote-worker.ts";
import { ownSchema } from "../support/own-schema.ts";
import { RemoteStage } from "../support/remote-stage.ts";
import { postgres } from "../support/servers.ts";
import { recordingLog, until } from "../support/store-stage.ts";

/** The codec that docs/tasks/payloads.md shows as an example. */
function aesCodec(keys: Record<string, Buffer>, current: string): PayloadCodec {
  return {
    encode(text, { task }) {
      const iv = randomBytes(12);
      const cipher = createCipheriv("aes-256-gcm", keys[current] as Buffer, iv).setAAD(Buffer.from(task));
      const sealed = Buffer.concat([iv, cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()]);
      return `${current}.${sealed.toString("base64")}`;
    },
    decode(encoded, { task }) {
      const [id = "", text = ""] = encoded.split(".");
      const key = keys[id];
      if (!key) throw new Error(`there is no key ${id}`);
      const sealed = Buffer.from(text, "base64");
      const decipher = createDecipheriv("aes-256-gcm", key, sealed.subarray(0, 12)).setAAD(Buffer.from(task));
      decipher.setAuthTag(sealed.subarray(-16));
      return Buffer.concat([decipher.update(sealed.subarray(12, -16)), decipher.final()]).toString("utf8");
    },
  };
}

const wait = { timeout: "60s" } as const;
const [first, second] = [randomBytes(32), randomBytes(32)];

describe("a codec of payloads and results", () => {
  const { schema, database, make } = ownSchema(postgres().url, "codec", { drain: 0 });
  const codec = aesCodec({ a: first }, "a");
  /** Returns all payloads, results and checkpoints of runs in the store, as JSON. */
  const stored = async () => {
    const { rows } = await database.query(
      `select payload::text, null as result, checkpoint::text from ${schema}.run
       union all select payload::text, result::text, null from ${schema}.run_history`,
    );
    return JSON.stringify(rows);
  };

  test("every enqueue, child, chain, join and result: the store holds no plain text", async () => {
    const tower = make({ codec });
    const seen: unknown[] = [];
    const task = tower.task("plain", {}, (_, payload: unknown) => {
      seen.push(payload);
      return { got: payload };
    });
    tower.task("parent", {}, async (run) => {
      await run.spawn("plain", { word: "xyzzy child" });
      return run.fanOut([{ task: "plain", payload: { word: "xyzzy other" } }], {
        join: "join",
        payload: { word: "xyzzy join" },
      });
    });
    tower.task("join", {}, async (run, payload) => ({
      payload,
      inputs: (await run.inputs()).map(({ result }) => result),
    }));
    tower.task("chain", {}, (run, n: number) => (n === 0 ? run.continueAs({ word: "xyzzy chain" }) : n));
    tower.task("own", {}, async (run) => {
      await database.query("begin");
      await run.complete(database, { word: "xyzzy own" });
      await database.query("commit");
    });
    await tower.start();
    const word = { word: "xyzzy" };
    await database.query("begin");
    const inTransaction = await task.enqueue(word, { tx: database });
    await database.query("commit");
    const handles = [
      inTransaction,
      await task.enqueue(word),
      await task.enqueue(word, { key: "k", ifKeyTaken: "replace" }),
      ...(await task.enqueueMany([word, word])),
    ];
    for (const handle of handles) {
      expect(await handle.result(wait)).toEqual({ got: word });
      expect(await handle.status()).toMatchObject({ payload: word, result: { got: word } });
    }
    expect(await (await tower.runs.retry(handles[0]?.runId as number)).result(wait)).toEqual({ got: word });
    await (await tower.enqueue("parent")).result(wait);
    await until("the join", async () => (await tower.runs.count({ task: "join", states: ["succeeded"] })).runs === 1);
    const [join] = (await tower.runs.list({ task: "join" })).items;
    expect((await tower.runs.get(join?.runId as number)).result).toEqual({
      payload: { word: "xyzzy join" },
      inputs: [{ got: { word: "xyzzy child" } }, { got: { word: "xyzzy other" } }],
    });
    await tower.enqueue("chain", 0);
    await until("the chain", async () => (await tower.runs.count({ task: "chain", states: ["succeeded"] })).runs === 2);
    const own = await tower.enqueue("own");
    expect(await own.result(wait)).toEqual({ word: "xyzzy own" });
    const none = await task.enqueue();
    expect(await none.result(wait)).toEqual({ got: null });
    const kept = await stored();
    expect(kept).toContain("carillon:encoded");
    expect(kept).not.toContain("xyzzy");
    const ends: unknown[] = [];
    for await (const event of (await task.enqueue(word)).events()) if (event.kind === "ended") ends.push(event.result);
    expect(ends).toEqual([{ got: word }]);
  });

  test("cluster events have decoded results, or the stored form if the codec is missing", async () => {
    const [own, other] = [make({ codec }), make({ worker: false })];
    const told = own.task("told", {}, () => ({ word: "plain" }));
    await Promise.all([own.start(), other.start()]);
    const heard: Record<string, unknown[]> = { own: [], named: [], other: [] };
    const of = { task: "told" };
    await own.on("run.succeeded", of, ({ result }) => heard.own?.push(result));
    await own.on("run.succeeded", { ...of, name: "codec" }, ({ result }) => heard.named?.push(result));
    await other.on("run.succeeded", of, ({ result }) => heard.other?.push(result));
    await told.enqueue();
    await until("all have heard", () => Object.values(heard).every(({ length }) => length === 1));
    expect(heard).toEqual({
      own: [{ word: "plain" }],
      named: [{ word: "plain" }],
      other: [{ "carillon:encoded": expect.stringMatching(/^a\./) }],
    });
  });

  test("with another key, a wrong key or no codec, the attempt fails with CODEC_FAILED, and the run stays readable", async () => {
    const producer = make({ codec, worker: false });
    producer.task("a", {}, () => "no");
    await producer.start();
    const failures: unknown[] = [];
    for (const given of [{ codec: aesCodec({ a: second }, "a") }, {}, { codec: aesCodec({ b: second }, "b") }]) {
      const { runId } = await producer.enqueue("a", { word: "xyzzy" });
      const tower = make(given);
      tower.task("a", {}, () => "no");
      await tower.start();
      await until("it has failed", async () => (await producer.runs.get(runId)).state === "failed");
      const run = await tower.runs.get(runId);
      failures.push(run.error);
      expect(run.payload).toEqual({ "carillon:encoded": expect.stringContaining("a.") });
      expect(JSON.stringify(run)).not.toContain("xyzzy");
      await tower.stop();
    }
    expect(failures).toEqual([
      expect.objectContaining({ code: "CODEC_FAILED", message: expect.stringContaining("could not be decoded") }),
      expect.objectContaining({ code: "CODEC_FAILED", message: expect.stringContaining("has no codec") }),
      expect.objectContaining({ code: "CODEC_FAILED", message: expect.stringContaining("there is no key a") }),
    ]);
    const reader = make({ worker: false });
    const worker = make({ codec });
    worker.task("b", {}, () => "done");
    await worker.start();
    const done = await worker.enqueue("b");
    await done.result(wait);
    await expect(reader.runs.result(done.runId, wait)).rejects.toMatchObject({ code: "CODEC_FAILED" });
  });

  test("a payload that cannot be encoded is not enqueued, and a result that cannot be encoded is not kept", async () => {
    let fails = false;
    const breaking = {
      ...codec,
      encode: (text: string, of: { task: string }) => {
        if (fails) throw new Error("the key service is away");
        return codec.encode(text, of);
      },
    };
    const tower = make({ codec: breaking });
    const task = tower.task("a", {}, () => {
      fails = true;
      return "done";
    });
    await tower.start();
    const handle = await task.enqueue(1);
    expect(await handle.result(wait)).toBeNull();
    await expect(task.enqueue(1)).rejects.toMatchObject({ code: "CODEC_FAILED" });
    expect((await tower.runs.count()).runs).toBe(1);
    fails = false;
    await expect(task.enqueue("x".repeat(250_000))).rejects.toMatchObject({ code: "PAYLOAD_TOO_LARGE" });
    expect(() => make({ codec: { encode: () => "" } as never })).toThrow("codec has no decode");
  });
});

describe("a codec on a worker without a store", () => {
  const stage = new RemoteStage();
  let key = "";
  beforeAll(async () => {
    await stage.serve();
    key = await stage.key("mine");
    await stage.task("work", {});
  });
  afterAll(() => stage.close());

  test("the server has no key, and shows neither payload nor result", async () => {
    const codec = aesCodec({ a: first }, "a");
    const seen: unknown[] = [];
    const one = worker({ server: stage.urlOf(), key, codec, handleSignals: false, log: recordingLog().log }).task(
      "work",
      (_, payload) => {
        seen.push(payload);
        return { answer: "xyzzy" };
      },
    );
    await one.start();
    const producer = carillon({ store: postgres().url, schema: stage.schema, codec, worker: false, scheduler: false });
    const handle = await producer.enqueue("work", { word: "xyzzy" });
    expect(await handle.result(wait)).toEqual({ answer: "xyzzy" });
    expect(seen).toEqual([{ word: "xyzzy" }]);
    const shown = await stage.store.runs.find(handle.runId);
    expect(shown).toMatchObject({ payload: { "carillon:encoded": expect.any(String) } });
    expect(JSON.stringify(shown)).not.toContain("xyzzy");
    await producer.stop();
    await one.stop();
  });
});
