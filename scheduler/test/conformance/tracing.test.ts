import { randomBytes } from "node:crypto";
import { context, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import pg from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Carillon, carillon } from "../../src/library/carillon.ts";
import type { Run } from "../../src/run/handler.ts";
import { every } from "../../src/schedule/schedule.ts";
import { postgres } from "../support/servers.ts";
import { numbers, recordingLog, until } from "../support/store-stage.ts";

const schema = `tracing_${randomBytes(5).toString("hex")}`;
const sql = new pg.Pool({ connectionString: postgres().url, types: numbers, max: 2 });
const exporter = new InMemorySpanExporter();
const towers: Carillon[] = [];
const make = (more: object = {}): Carillon => {
  const { log } = recordingLog();
  const tower = carillon({ store: postgres().url, schema, handleSignals: false, log, ...more });
  towers.push(tower);
  return tower;
};
const withTasks = (tower: Carillon): Carillon => {
  tower.task("works", {}, async () => {
    trace.getTracer("user").startSpan("inside").end();
  });
  tower.task("slots", { schedule: every("200ms") }, () => undefined);
  tower.task("fails", { retry: { attempts: 2, delay: 1 } }, async (run: Run) => {
    throw new TypeError(`no way ${run.attempt}`);
  });
  return tower;
};
const named = (name: string): ReadableSpan[] => exporter.getFinishedSpans().filter((span) => span.name === name);
const ended = (name: string, count = 1) => until(`${count} spans ${name}`, () => named(name).length >= count);
const tracer = () => trace.getTracer("user");

beforeAll(() => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
});
afterAll(async () => {
  trace.disable();
  context.disable();
  await Promise.all(towers.map((tower) => tower.stop()));
  await sql.query(`drop schema if exists ${schema} cascade`);
  await sql.end();
});

it("without an SDK nothing is written; with one a run's span continues its enqueuer's, within and across processes", async () => {
  const plain = withTasks(make());
  await plain.start();
  await plain.enqueue("works");
  await until("it has run", async () => {
    const { rows } = await sql.query(`select from ${schema}.run_history where source = 2`);
    return rows.length === 1;
  });
  await plain.stop();
  expect((await sql.query(`select from ${schema}.run_origin`)).rows).toEqual([]);

  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }));
  // This process only enqueues, so that another one claims the run. A later part of the test does both in one process.
  const front = make({ scheduler: false, worker: false });
  const { runId } = await tracer().startActiveSpan("request", async (span) => {
    const made = await front.enqueue("works");
    span.end();
    return made;
  });
  const later = await front.enqueue("works", undefined, { in: "61s" });
  const tower = withTasks(make());
  await tower.start();
  await ended("run works");
  const [request, enqueue, run, inside] = ["request", "enqueue works", "run works", "inside"].map(
    (name) => named(name)[0],
  );
  expect(run?.spanContext().traceId).toBe(request?.spanContext().traceId);
  expect([
    enqueue?.parentSpanContext?.spanId,
    run?.parentSpanContext?.spanId,
    inside?.parentSpanContext?.spanId,
  ]).toEqual([request?.spanContext().spanId, enqueue?.spanContext().spanId, run?.spanContext().spanId]);
  expect([enqueue?.kind, run?.kind]).toEqual([SpanKind.PRODUCER, SpanKind.CONSUMER]);
  expect(run?.attributes).toEqual({
    "messaging.system": "carillon",
    "messaging.operation.type": "process",
    "messaging.destination.name": "works",
    "carillon.run": runId,
    "carillon.attempt": 1,
  });
  expect(enqueue?.attributes["carillon.run"]).toBe(runId);

  await tower.enqueue("works");
  await ended("run works", 2);
  const [, , here] = named("enqueue works");
  expect(named("run works")[1]?.parentSpanContext?.spanId).toBe(here?.spanContext().spanId);

  // Moves the run a minute into the past, so that it is due now.
  await sql.query(`update ${schema}.run_origin set created_ms = created_ms - 61000 where run_id = $1`, [later.runId]);
  await sql.query(`update ${schema}.run set due_ms = due_ms - 61000 where id = $1`, [later.runId]);
  await tower.enqueue("works");
  await until("the late one has run", () =>
    named("run works").some((span) => span.attributes["carillon.run"] === later.runId),
  );
  const late = named("run works").find((span) => span.attributes["carillon.run"] === later.runId);
  expect([late?.parentSpanContext, late?.links.length]).toEqual([undefined, 1]);
  expect(late?.links[0]?.context.spanId).toBe(named("enqueue works")[1]?.spanContext().spanId);
});

it("slots are root spans; each attempt has a span, and a failure its error; a transaction passes on its origin", async () => {
  const tower = towers.at(-1) as Carillon;
  await ended("run slots");
  expect([named("run slots")[0]?.parentSpanContext, named("run slots")[0]?.links]).toEqual([undefined, []]);
  expect(named("run slots")[0]?.attributes["carillon.slot"]).toMatch(/^\d{4}-.*Z$/);
  const client = await sql.connect();
  await client.query("begin");
  const { runId } = await tower.enqueue("fails", undefined, { tx: client });
  await client.query("commit");
  client.release();
  // The enqueue could send no signal before the commit, so the run may be found only by a later poll.
  await ended("run fails", 2);
  const tries = named("run fails");
  expect(tries.map(({ attributes }) => [attributes["carillon.run"], attributes["carillon.attempt"]])).toEqual([
    [runId, 1],
    [runId, 2],
  ]);
  const [parent] = named("enqueue fails");
  for (const one of tries) {
    expect(one.parentSpanContext?.spanId).toBe(parent?.spanContext().spanId);
    expect(one.status).toEqual({ code: SpanStatusCode.ERROR, message: expect.stringMatching(/^no way \d$/) });
    expect(one.events).toMatchObject([{ name: "exception", attributes: { "exception.type": "TypeError" } }]);
  }
  const tx = { query: () => Promise.reject(new Error("the client is gone")) };
  await expect(tower.enqueue("works", undefined, { tx })).rejects.toThrow("gone");
  expect(named("enqueue works").at(-1)?.status).toEqual({ code: SpanStatusCode.ERROR, message: "the client is gone" });
});
