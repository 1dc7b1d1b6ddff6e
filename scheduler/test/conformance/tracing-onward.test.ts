import { context, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Carillon, carillon } from "../../src/library/carillon.ts";
import { type RemoteWorker, worker } from "../../src/library/remote-worker.ts";
import { ApiStage } from "../support/api-stage.ts";
import { postgres } from "../support/servers.ts";
import { recordingLog, until } from "../support/store-stage.ts";

const stage = new ApiStage();
const exporter = new InMemorySpanExporter();
const { log } = recordingLog();
let tower: Carillon;
let far: RemoteWorker;

const named = (name: string): ReadableSpan[] => exporter.getFinishedSpans().filter((span) => span.name === name);
const runOf = async (task: string, runId?: number): Promise<ReadableSpan> => {
  const find = () =>
    named(`run ${task}`).find(({ attributes }) => runId === undefined || attributes["carillon.run"] === runId);
  await until(`${task} ${runId ?? ""} has run`, () => find() !== undefined);
  return find() as ReadableSpan;
};
const parentOf = (span: ReadableSpan) => [span.spanContext().traceId, span.parentSpanContext?.spanId];
const idsOf = (span: ReadableSpan) => [span.spanContext().traceId, span.spanContext().spanId];
const ids = ["0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"];
const headers = { traceparent: `00-${ids.join("-")}-01` };
const post = async (path: string, body: object, server: Carillon, more = {}) => {
  const answer = await stage.ask("POST", path, { token: stage.tokens.operator, body, headers: more }, server);
  expect(answer.status).toBe(201);
  return answer.body;
};

beforeAll(async () => {
  // The first server starts without a tracing SDK, all later ones with it.
  await stage.open();
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }));
  await stage.serve();
  await stage.task("far", { group: "far" });
  tower = carillon({ store: postgres().url, schema: stage.schema, handleSignals: false, log });
  tower.task("near", {}, () => undefined);
  tower.task("leaf", {}, () => undefined);
  tower.task("joined", {}, () => undefined);
  tower.task("follower", { after: "fork" }, () => undefined);
  tower.task("fork", {}, (run) => run.fanOut([{ task: "leaf", payload: 1, key: "a" }], { join: "joined" }));
  tower.task<number>("link", {}, (run, left) => (left > 1 ? run.continueAs(left - 1) : undefined));
  await tower.start();
  const key = await stage.key("far", ["far", "default"]);
  far = worker({ server: stage.servers.map((one) => stage.urlOf(one)), key, groups: ["far"], log });
  far.task("far", async (run) => {
    await run.spawn("leaf", "of far");
  });
  await far.start();
});
afterAll(async () => {
  trace.disable();
  context.disable();
  await far?.stop();
  await tower?.stop();
  await stage.close();
});

it("a request's traceparent passes to the run, even through a server without tracing; without one none is stored", async () => {
  const [plain, tracing] = stage.servers as [Carillon, Carillon];
  const { run: silent } = await post("/v1/tasks/near/runs", {}, plain);
  expect((await runOf("near", silent)).parentSpanContext).toBe(undefined);
  expect(await stage.rows("select from $s.run_origin union all select from $s.run_span")).toEqual([]);

  const { run } = await post("/v1/tasks/near/runs", {}, plain, headers);
  expect(parentOf(await runOf("near", run))).toEqual(ids);
  const { runs } = await post("/v1/runs", { runs: [{ task: "near" }, { task: "leaf" }] }, plain, headers);
  expect(parentOf(await runOf("leaf", runs[1].run))).toEqual(ids);
  const odd = await post("/v1/tasks/near/runs", {}, plain, { traceparent: "00-odd" });
  expect((await runOf("near", odd.run)).parentSpanContext).toBe(undefined);

  const made = await post("/v1/tasks/near/runs", {}, tracing, headers);
  const [enqueue] = named("enqueue near") as [ReadableSpan];
  expect(parentOf(enqueue)).toEqual(ids);
  expect(parentOf(await runOf("near", made.run))).toEqual(idsOf(enqueue));
  await post("/v1/runs", { runs: [{ task: "near" }, { task: "leaf" }] }, tracing, headers);
  expect(named("enqueue")[0]?.attributes["messaging.batch.message_count"]).toBe(2);
});

it("spawned runs, joins and followers continue the run's trace; the next run of a chain has a span link", async () => {
  const { runId } = await tower.enqueue("fork");
  const fork = await runOf("fork", runId);
  const begun = () => named("run leaf").some((span) => span.parentSpanContext?.spanId === fork.spanContext().spanId);
  await until("the leaf has run", begun);
  for (const task of ["joined", "follower"]) expect(parentOf(await runOf(task))).toEqual(idsOf(fork));

  await tower.enqueue("link", 2);
  await until("the chain has ended", () => named("run link").length === 2);
  const [first, second] = named("run link") as [ReadableSpan, ReadableSpan];
  expect(second.parentSpanContext).toBe(undefined);
  expect(second.links.map((link) => link.context.spanId)).toEqual([first.spanContext().spanId]);
});

it("a remote worker's run is a child of the caller's span, and the runs it spawns are children of the run", async () => {
  const { run } = await post("/v1/tasks/far/runs", {}, stage.server, headers);
  const remote = await runOf("far", run);
  expect(parentOf(remote)).toEqual(ids);
  await until("what it spawned has run", () =>
    named("run leaf").some((span) => span.parentSpanContext?.spanId === remote.spanContext().spanId),
  );
});
