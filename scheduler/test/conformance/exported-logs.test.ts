/** Tests the export of logs with OpenTelemetry's own API and SDK, and its in-memory exporter. */
import { context, trace } from "@opentelemetry/api";
import { logs } from "@opentelemetry/api-logs";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { InMemoryLogRecordExporter, LoggerProvider, SimpleLogRecordProcessor } from "@opentelemetry/sdk-logs";
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { afterAll, expect, it } from "vitest";
import { exported } from "../../src/base/log.ts";
import type { Run } from "../../src/run/handler.ts";
import { ownSchema } from "../support/own-schema.ts";
import { postgres } from "../support/servers.ts";
import { recordingLog, until } from "../support/store-stage.ts";

const { make } = ownSchema(postgres().url, "logs");
const { log, lines } = recordingLog();
const exporter = new InMemoryLogRecordExporter();
const spans = new InMemorySpanExporter();

afterAll(() => {
  logs.disable();
  trace.disable();
  context.disable();
});

async function ran(): Promise<number> {
  const tower = make({ log });
  tower.task("writes", {}, (run: Run) => {
    run.log.warn("no ink", { pages: 3, error: new TypeError("dry") });
    run.log.debug("details");
  });
  await tower.start();
  const { runId } = await tower.enqueue("writes");
  const { store } = await tower.open();
  await until("it has ended", async () => (await store.runs.find(runId)).endedMs !== null);
  await tower.stop();
  return runId;
}

it("exported logs: a processor that throws, or logs through Carillon itself, loses no log line and no run", () => {
  const { log: own, lines: written } = recordingLog();
  const loud = exported(own);
  let emitted = 0;
  const emit = () => {
    emitted++;
    loud.info({}, "from the processor");
    throw new Error("no disk");
  };
  logs.setGlobalLoggerProvider({ getLogger: () => ({ emit, enabled: () => true }) } as never);
  const warned: string[] = [];
  const hear = (warning: Error) => void warned.push(warning.message);
  process.on("warning", hear);
  loud.warn({}, "first");
  loud.error({}, "second");
  logs.disable();
  expect(emitted, "once a line of the program").toBe(2);
  expect(written.map(({ message }) => message)).toEqual([
    "from the processor",
    "first",
    "from the processor",
    "second",
  ]);
  return until("the warning", () => warned.length > 0).then(() => {
    process.off("warning", hear);
    expect(warned).toEqual([expect.stringContaining("no disk")]);
  });
});

it("logs go to the logger provider that the application set up, a run's logs with its trace, and not before", async () => {
  await ran();
  const provider = new LoggerProvider({ processors: [new SimpleLogRecordProcessor({ exporter })] });
  logs.setGlobalLoggerProvider(provider);
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] }));
  lines.length = 0;
  const runId = await ran();
  const records = exporter.getFinishedLogRecords();
  const ofRun = records.filter(({ attributes }) => attributes["carillon.run"] === runId);
  expect(ofRun.map(({ severityText, severityNumber, body }) => [severityText, severityNumber, body])).toEqual([
    ["WARN", 13, "no ink"],
    ["DEBUG", 5, "details"],
  ]);
  expect(ofRun[0]?.attributes).toMatchObject({ pages: 3, "carillon.attempt": 1, error: { message: "dry" } });
  const [span] = spans.getFinishedSpans().filter(({ name }) => name === "run writes");
  expect(span && ofRun[0]?.spanContext).toMatchObject(span?.spanContext() ?? {});
  expect(ofRun[0]?.instrumentationScope.name).toBe("carillon");
  const own = records.filter((record) => !ofRun.includes(record)).map(({ body, severityText }) => [severityText, body]);
  expect(own).toEqual(
    lines.filter(({ level }) => level !== "debug").map(({ level, message }) => [level.toUpperCase(), message]),
  );
  expect(own.length).toBeGreaterThan(0);
});
