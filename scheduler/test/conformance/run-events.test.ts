import { describe, expect, test } from "vitest";
import type { RunEvent } from "../../src/index.ts";
import { ownSchema } from "../support/own-schema.ts";
import { everyPostgres } from "../support/servers.ts";
import { until } from "../support/store-stage.ts";

describe.each(everyPostgres())("events of a run on $title", ({ url }) => {
  const { make } = ownSchema(url, "events", { drain: 0 });
  const told = (event: RunEvent) => {
    switch (event.kind) {
      case "state":
        return `${event.state} ${event.attempt}`;
      case "log":
        return `${event.line.level}: ${event.line.message}`;
      case "progress":
        return `progress ${JSON.stringify(event.progress)}`;
      case "ended":
        return `${event.outcome} ${event.attempt} ${JSON.stringify(event.result)}`;
    }
  };

  test("another process follows a run from its enqueue to its end, through a retry, with all of its log", async () => {
    const [producer, worker] = [make({ worker: false, scheduler: false }), make()];
    let goOn: () => void = () => undefined;
    const gate = () =>
      new Promise<void>((resolve) => {
        goOn = resolve;
      });
    const options = { retry: { attempts: 2, delay: "10ms", jitter: 0 } } as const;
    worker.task("a", options, async (run) => {
      run.log.info(`try ${run.attempt}`);
      run.progress({ done: run.attempt });
      await gate();
      if (run.attempt === 1) throw new Error("not yet");
      run.log.warn("at last");
      return { done: true };
    });
    await worker.start();
    const handle = await producer.enqueue("a");
    const seen: string[] = [];
    const following = (async () => {
      for await (const event of handle.events()) seen.push(told(event));
    })();
    await until(
      "the first try's log",
      async () => seen.includes("info: try 1") && seen.includes('progress {"done":1}'),
    );
    goOn();
    await until("the second try's log", async () => seen.includes("info: try 2"));
    goOn();
    await following;
    expect(seen.filter((one) => /^(info|warn)/.test(one))).toEqual(["info: try 1", "info: try 2", "warn: at last"]);
    expect(seen.at(-1)).toBe('succeeded 2 {"done":true}');
    expect(seen.filter((one) => one.startsWith("claimed"))).toEqual(["claimed 1", "claimed 2"]);
  });

  test("an ended run yields its log and its end; an abort, or the end of its process, ends a live run's events", async () => {
    const [producer, worker] = [make({ worker: false }), make()];
    producer.task("later", {}, () => undefined);
    worker.task("a", {}, (run) => run.log.info("here"));
    await Promise.all([producer.start(), worker.start()]);
    const ended = await producer.enqueue("a");
    await ended.result({ timeout: "60s" });
    const seen: string[] = [];
    for await (const event of producer.runs.events(ended.runId)) seen.push(told(event));
    expect(seen).toEqual(["info: here", "succeeded 1 null"]);

    const waiting = await producer.enqueue("later", null, { in: "1h" });
    const aborting = new AbortController();
    const states: string[] = [];
    for await (const event of waiting.events({ signal: aborting.signal })) {
      states.push(told(event));
      aborting.abort();
    }
    expect(states).toEqual(["ready 0"]);
    const following = (async () => {
      for await (const event of waiting.events()) states.push(told(event));
    })();
    await until("it is followed", async () => states.length === 2);
    await producer.stop();
    await following;
    expect(states).toEqual(["ready 0", "ready 0"]);
    await expect(make({ worker: false }).runs.events(999_999_999).next()).rejects.toMatchObject({
      code: "RUN_UNKNOWN",
    });
  });
});
