import { afterEach, describe, expect, expectTypeOf, it } from "vitest";
import type { ClusterEvent, EventListening, Json, SqlClient } from "../../src/index.ts";
import { ownSchema } from "../support/own-schema.ts";
import { everyPostgres } from "../support/servers.ts";
import { recordingLog, until } from "../support/store-stage.ts";

describe.each(everyPostgres())("events of the cluster on $title", ({ url }) => {
  const { make, database, schema } = ownSchema(url, "events", { drain: 0 });
  const { log, lines } = recordingLog();
  afterEach(() => lines.splice(0));

  /** Starts a process with a worker; runs of `fine` succeed with their payload as result, runs of `bad` fail. */
  async function working() {
    const tower = make({ log });
    tower.task("fine", {}, (_run, payload: Json) => payload);
    tower.task("team/fine", {}, (_run, payload: Json) => payload);
    tower.task("bad", { retry: { attempts: 2, delay: "1ms", jitter: 0 } }, () => {
      throw new Error("it is bad");
    });
    return tower.start();
  }
  const listening = (options = {}) => make({ worker: false, scheduler: false, log, ...options });
  const runs = (heard: ClusterEvent[]) => heard.map(({ type, task }) => `${type} ${task}`);

  it("reach a process that runs nothing, by type and task, with result or error", async () => {
    const [worker, ears] = [await working(), listening()];
    const [all, failures, ofTeam]: [ClusterEvent[], ClusterEvent[], ClusterEvent[]] = [[], [], []];
    await ears.on(["run.succeeded", "run.failed", "run.retried"], (event) => void all.push(event));
    const failing = await ears.on("run.failed", { task: "bad" }, (event) => {
      expectTypeOf(event.type).toEqualTypeOf<"run.failed">();
      expectTypeOf(event.error).toEqualTypeOf<Json>();
      // @ts-expect-error a failure has no result
      expect(event.result).toBeUndefined();
      failures.push(event);
    });
    await ears.on("run.succeeded", { namespace: "team" }, (event) => {
      expectTypeOf(event.result).toEqualTypeOf<Json>();
      ofTeam.push(event);
    });
    const fine = await worker.enqueue("fine", { sum: 7 }, { key: "k" });
    await fine.result();
    await expect((await worker.enqueue("bad", null)).result()).rejects.toMatchObject({ code: "RUN_FAILED" });
    await (await worker.enqueue("team/fine", null)).result();
    await until("all are heard", () => all.length === 4 && failures.length === 1 && ofTeam.length === 1);
    expect(runs(all)).toEqual(["run.succeeded fine", "run.retried bad", "run.failed bad", "run.succeeded team/fine"]);
    expect(all[0]).toMatchObject({ runId: fine.runId, attempt: 1, key: "k", result: { sum: 7 }, slotMs: null });
    expect(failures).toMatchObject([{ attempt: 2, error: { message: "it is bad" } }]);
    expect(ofTeam).toMatchObject([{ task: "team/fine" }]);
    await failing.close();
    await expect((await worker.enqueue("bad", null)).result()).rejects.toMatchObject({ code: "RUN_FAILED" });
    await until("the others hear on", () => all.length === 6);
    expect(failures).toHaveLength(1);
  });

  it("continue after a cursor in another process; a handler that throws is logged", async () => {
    const [worker, ears] = [await working(), listening()];
    const heard: ClusterEvent[] = [];
    const first = await ears.on("run.succeeded", (event) => {
      heard.push(event);
      throw new Error("no use");
    });
    for (const n of [1, 2]) await (await worker.enqueue("fine", n)).result();
    await until("two are heard", () => heard.length === 2);
    expect(lines).toContainEqual(expect.objectContaining({ level: "error", message: "a listener to events threw" }));
    await first.close();
    await ears.stop();
    for (const n of [3, 4]) await (await worker.enqueue("fine", n)).result();
    const over = new AbortController();
    const seen: Json[] = [];
    const cursor = heard[0]?.cursor as string;
    for await (const event of listening().events.each({
      types: ["run.succeeded"],
      after: cursor,
      signal: over.signal,
    })) {
      if (event.type === "run.succeeded") seen.push(event.result);
      if (event.type === "run.succeeded" && event.result === 4) over.abort();
    }
    expect(seen).toEqual([2, 3, 4]);
  });

  it("a reader that pauses continues at its position, and misses none", async () => {
    const [worker, ears] = [await working(), listening()];
    const quick: ClusterEvent[] = [];
    await ears.on("run.succeeded", (event) => void quick.push(event));
    await (await worker.enqueue("fine", -1)).result();
    await until("the quick one has heard", () => quick.length === 1);
    const slow = ears.events.each({ types: ["run.succeeded"], after: quick[0]?.cursor as string });
    const first = slow.next();
    const numbers = Array.from({ length: 1_600 }, (_, n) => n);
    await worker.enqueueMany("fine", numbers as never);
    await until("the quick one has heard all", () => quick.length >= 1_601);
    const seen = new Set<Json>();
    for (let value = (await first).value; ; { value } = await slow.next()) {
      if (value?.type === "run.succeeded") seen.add(value.result);
      if (seen.size === 1_600) break;
    }
    expect([...seen].toSorted((a, b) => Number(a) - Number(b))).toEqual(numbers);
  });

  it("a cursor of events that were not recorded is refused, and so is an unknown option", async () => {
    const ears = listening();
    const at = "0~1~0~5:5:~~~~";
    await expect(ears.events.each({ after: at }).next()).rejects.toMatchObject({ code: "CURSOR_GONE", path: "after" });
    const refused = (given: object, message: string) =>
      expect(ears.on("run.failed", given, () => undefined)).rejects.toMatchObject({
        code: "OPTION_INVALID",
        message: expect.stringContaining(message),
      });
    await refused({ tsk: "a" }, 'did you mean "task"?');
    await refused({ tx: true }, "only a consumer with a name");
    await refused({ name: "a b" }, "cannot be called");
    await refused({ after: "x" }, "no cursor");
    await expect(ears.on("run.fail" as "run.failed", () => undefined)).rejects.toMatchObject({
      message: 'there is no event "run.fail"; did you mean "run.failed"?',
    });
    await ears.stop();
    await expect(ears.on("run.failed", () => undefined)).rejects.toMatchObject({ code: "STOPPED" });
  });

  it("of two processes with the same consumer name, one handles events; the other continues when it stops", async () => {
    const [worker, one, other] = [await working(), listening(), listening()];
    const heard: string[] = [];
    const serve = (who: string, tower: typeof one): Promise<EventListening> =>
      tower.on("run.succeeded", { name: "billing" }, ({ result }) => void heard.push(`${who} ${result}`));
    await serve("one", one);
    await (await worker.enqueue("fine", 1)).result();
    await until("one has heard", () => heard.length === 1);
    await serve("other", other);
    await (await worker.enqueue("fine", 2)).result();
    await until("the second is heard", () => heard.length === 2);
    await one.stop();
    for (const n of [3, 4]) await (await worker.enqueue("fine", n)).result();
    await until("the other has heard", () => heard.length === 4);
    expect(heard).toEqual(["one 1", "one 2", "other 3", "other 4"]);
    await other.stop();
    await (await worker.enqueue("fine", 5)).result();
    const third = listening();
    await serve("third", third);
    await until("what nobody served", () => heard.length === 5);
    expect(heard.at(-1)).toBe("third 5");
    expect(await third.events.forget("billing")).toBe(true);
    await (await worker.enqueue("fine", 6)).result();
    await until("it is forgotten", () => lines.some(({ message }) => message.includes("was forgotten")));
  });

  it("an event whose handler throws is delivered again, before later ones", async () => {
    const [worker, ears] = [await working(), listening()];
    const heard: string[] = [];
    await ears.on("run.succeeded", { name: "strict" }, ({ result }, { attempt }) => {
      heard.push(`${result} ${attempt}`);
      if (result === 1 && attempt === 1) throw new Error("not yet");
    });
    for (const n of [1, 2]) await (await worker.enqueue("fine", n)).result();
    await until("both are handled", () => heard.length === 3);
    expect(heard).toEqual(["1 1", "1 2", "2 1"]);
    expect(lines).toContainEqual(
      expect.objectContaining({ level: "warn", fields: expect.objectContaining({ consumer: "strict", attempt: 1 }) }),
    );
  });

  it("an event handled in a transaction takes effect once, whatever throws, along with its enqueues", async () => {
    const [worker, ears] = [await working(), listening()];
    await database.query(`create table ${schema}.ledger (run bigint, result int)`);
    await ears.on("run.succeeded", { name: "ledger", tx: true, task: "fine" }, async (event, { tx, attempt }) => {
      expectTypeOf(tx).toEqualTypeOf<SqlClient>();
      await tx.query(`insert into ${schema}.ledger values ($1, $2)`, [event.runId, event.result]);
      await ears.enqueue("team/fine", event.result, { tx });
      if (attempt === 1) throw new Error("undone");
    });
    for (const n of [1, 2]) await (await worker.enqueue("fine", n)).result();
    const ledger = async () => (await database.query(`select result from ${schema}.ledger order by 1`)).rows;
    await until("both are in the ledger", async () => (await ledger()).length === 2);
    expect(await ledger()).toEqual([{ result: 1 }, { result: 2 }]);
    await until("what was enqueued has run", async () => {
      const { items } = await worker.runs.list({ task: "team/fine", states: ["succeeded"] });
      return items.length === 2;
    });
    expect((await worker.runs.list({ task: "team/fine" })).items).toHaveLength(2);
  });
});
