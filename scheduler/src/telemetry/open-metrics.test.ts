import { afterEach, expect, test } from "vitest";
import { systemClock } from "../base/clock.ts";
import type { RunNotice } from "../run/handler.ts";
import { Metrics } from "./metrics.ts";
import { prefersOpenMetrics } from "./open-metrics.ts";
import type { Tracing } from "./tracing.ts";

const registered = Symbol.for("opentelemetry.js.api.1");
const shared = globalThis as { [registered]?: object };
const before = shared[registered];
afterEach(() => {
  if (before === undefined) delete shared[registered];
  else shared[registered] = before;
});

/** The Accept headers that Prometheus 2.42 and Prometheus 3 send. */
const asked = [
  "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
  "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
] as const;

test("a scraper gets OpenMetrics if it prefers it", () => {
  for (const accept of [...asked, "application/openmetrics-text", "Application/OpenMetrics-Text; q=0.1"])
    expect([accept, prefersOpenMetrics(accept)]).toEqual([accept, true]);
  const others = [
    undefined,
    "",
    "*/*",
    "text/plain",
    "text/plain;version=0.0.4;q=1,*/*;q=0.1",
    "application/json, ;;q=,",
  ];
  const refused = ["application/openmetrics-text;q=0", "application/openmetrics-text;q=0.2, text/plain"];
  for (const accept of [...others, ...refused]) expect([accept, prefersOpenMetrics(accept)]).toEqual([accept, false]);
});

const state = { trusted: true, worker: { held: 0, concurrency: 1 } };
const notice = (runId: number, more: Partial<RunNotice>): RunNotice => ({
  kind: "started",
  runId,
  task: "t",
  attempt: 1,
  slotMs: null,
  dueMs: 1_000,
  readyMs: 1_000,
  startedMs: 1_030,
  endedMs: null,
  outcome: null,
  error: null,
  ...more,
});
const ended = { kind: "ended", endedMs: 1_530, outcome: "succeeded" } as const;

test("each format is complete, whichever format was requested before or at the same time", async () => {
  const metrics = new Metrics(systemClock);
  const plainly = await metrics.own(state);
  expect(plainly.contentType).toBe("text/plain; version=0.0.4; charset=utf-8");
  const [open, plain] = await Promise.all([metrics.own(state, asked[0]), metrics.own(state)]);
  expect(open.contentType).toBe("application/openmetrics-text; version=1.0.0; charset=utf-8");
  const names = (text: string) => [...text.matchAll(/^([a-z_:]+)[{ ]/gm)].map(([, name]) => name).toSorted();
  expect(names(plain.text)).toEqual(names(plainly.text));
  expect(names(open.text)).toEqual(names(plainly.text));
  const typed = (text: string) =>
    text.split("\n").filter((line) => /^# TYPE (?:carillon_exhausted|process_cpu_sec)/.test(line));
  expect(typed(plain.text)).toEqual([
    "# TYPE carillon_exhausted_total counter",
    "# TYPE process_cpu_seconds_total counter",
  ]);
  expect(typed(open.text)).toEqual(["# TYPE carillon_exhausted counter", "# TYPE process_cpu_seconds counter"]);
  expect(open.text).toMatch(/\n# EOF\n$/);
  expect(plain.text).not.toContain("# EOF");
});

test("delay and duration have exemplars if the run's span is sampled, but none in the Prometheus format", async () => {
  shared[registered] = { trace: {} };
  const metrics = new Metrics(systemClock);
  const tracing = {} as Tracing;
  metrics.follow(tracing);
  const run = (runId: number, attempt: number, traceFlags: number) => {
    if (attempt === 1) metrics.started(30);
    metrics.notice(notice(runId, { attempt }));
    tracing.onSpan?.(runId, { traceId: `trace-${runId}`, spanId: "s", traceFlags });
    metrics.notice(notice(runId, { ...ended, attempt, endedMs: 1_030 + attempt * 500 }));
  };
  /** Returns each line with an exemplar, without the exemplar's time. */
  const marked = async (accept?: string) =>
    (await metrics.own(state, accept)).text
      .split("\n")
      .filter((line) => line.includes(" # {"))
      .map((line) => line.slice(0, line.lastIndexOf(" ")));
  run(1, 1, 0);
  expect(await marked(asked[0]), "a trace that is not sampled").toEqual([]);
  run(2, 1, 1);
  run(3, 2, 1);
  expect(await marked(asked[0])).toEqual([
    'carillon_run_lateness_seconds_bucket{le="0.05"} 2 # {trace_id="trace-2",run_id="2"} 0.03',
    'carillon_attempt_seconds_bucket{le="1",outcome="succeeded"} 3 # {trace_id="trace-3",run_id="3"} 1',
  ]);
  expect(await marked()).toEqual([]);
});

test("without tracing, a run is counted as before exemplars existed", async () => {
  delete shared[registered];
  const metrics = new Metrics(systemClock);
  const tracing = {} as Tracing;
  metrics.follow(tracing);
  expect(tracing.onSpan).toBeUndefined();
  metrics.started(30);
  metrics.notice(notice(1, {}));
  metrics.notice(notice(1, ended));
  const { text } = await metrics.own(state, asked[0]);
  expect(text).toContain("carillon_run_lateness_seconds_count 1\n");
  expect(text).toContain('carillon_attempt_seconds_count{outcome="succeeded"} 1\n');
  expect(text).not.toContain(" # {");
});
