/** Tests the rules and the dashboard of deploy/ with a real Prometheus that scrapes every kind of process. */
import { context, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import pg from "pg";
import { afterEach, expect, it } from "vitest";
import { type Carillon, carillon } from "../../src/library/carillon.ts";
import { type RemoteWorker, worker } from "../../src/library/remote-worker.ts";
import { leaves } from "../cli/leaves.ts";
import { here, json, schema, start, url } from "../cli/process.ts";
import { alertCases, alertTests } from "../support/alert-cases.ts";
import { dashboard, filled, legendOf, metricsOf, type Panel, rules, rulesText } from "../support/dashboard.ts";
import { type ExemplarSeries, Prometheus, promtool, type Sample } from "../support/prometheus.ts";
import { until } from "../support/store-stage.ts";

const rulesFile = "carillon.rules.yml";
const towers: Carillon[] = [];
const remotes: RemoteWorker[] = [];
let prometheus: Prometheus | undefined;

// This hook runs before the hook of process.ts, which drops the schema.
afterEach(async () => {
  trace.disable();
  context.disable();
  await Promise.all([...remotes.splice(0), ...towers.splice(0)].map((one) => one.stop()));
  await prometheus?.stop();
});

it("promtool accepts the rules, and each alert fires for its own condition and no other", async () => {
  const checked = await promtool({ [rulesFile]: rulesText }, "check", "rules", "--lint=all", "--lint-fatal", rulesFile);
  expect(checked).toEqual({ code: 0, output: expect.stringContaining(`SUCCESS: ${rules.length} rules found`) });
  const alerts = rules.filter(({ alert }) => alert !== undefined);
  expect(alerts.map(({ alert }) => alert).toSorted()).toEqual(Object.keys(alertCases).toSorted());
  const tests = { [rulesFile]: rulesText, "tests.yml": alertTests(rulesFile) };
  expect(await promtool(tests, "test", "rules", "tests.yml")).toEqual({ code: 0, output: expect.any(String) });
});

it("each alert has a severity, and advice with existing commands", () => {
  const commands = leaves().map(({ name }) => name);
  for (const { alert, labels, annotations } of rules.filter((rule) => rule.alert !== undefined)) {
    expect([alert, labels?.severity]).toEqual([alert, expect.stringMatching(/^(?:warning|critical)$/)]);
    expect([alert, annotations?.summary, annotations?.description]).toEqual([
      alert,
      expect.stringMatching(/\w/),
      expect.stringMatching(/\.$/),
    ]);
    for (const [, words = ""] of (annotations?.description ?? "").matchAll(/`carillon ([a-z ]*[a-z])/g))
      expect([words, commands.some((name) => `${name} `.startsWith(`${words} `))]).toEqual([words, true]);
  }
});

it("the dashboard's panels do not overlap, and use only its own data source and variables", () => {
  const { panels, templating } = dashboard;
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  const cells = panels.flatMap(({ gridPos: { h, w, x, y } }) =>
    Array.from({ length: h * w }, (_, n) => `${x + (n % w)} ${y + Math.floor(n / w)}`),
  );
  expect(new Set(cells).size).toBe(cells.length);
  expect(panels.every(({ gridPos: { w, x } }) => x + w <= 24)).toBe(true);
  const own = ["datasource", "job", "namespace", "group"];
  expect(templating.list.map(({ name }) => name)).toEqual(own);
  for (const { title, targets = [], datasource } of panels.filter(({ type }) => type !== "row")) {
    expect([title, targets.length > 0]).toEqual([title, true]);
    for (const source of [datasource, ...targets.map((target) => target.datasource)])
      expect([title, source]).toEqual([title, { type: "prometheus", uid: "$" + "{datasource}" }]);
  }
  const used = [...JSON.stringify(dashboard).matchAll(/\$\{?(\w+)/g)].map(([, name = ""]) => name);
  expect([...new Set(used)].toSorted()).toEqual(["__all", "__rate_interval", ...own].toSorted());
});

/** Starts an instance with a worker that listens. The test's exporter records its traces. */
async function traced(group: string): Promise<Carillon> {
  const tower = carillon({
    store: url,
    schema,
    groups: [group],
    scheduler: false,
    listen: "127.0.0.1:0",
    handleSignals: false,
  });
  towers.push(tower);
  tower.task("billing/report", { group }, () => undefined);
  tower.task("billing/hopeless", { group, retry: { attempts: 2, delay: 1 } }, () => {
    throw new Error("no");
  });
  return tower.start();
}

/** Starts a remote worker that listens. The test's exporter records its traces. */
async function remoteWorker(server: string, group: string): Promise<RemoteWorker> {
  const key = (await json("keys", "create", "one", "--group", group)).key as string;
  const remote = worker({ server: `http://${server}`, key, listen: "127.0.0.1:0", handleSignals: false });
  remotes.push(remote);
  return remote.task("remote", () => undefined).start();
}

it("a real Prometheus has all metrics used, an alert fires and ends, and exemplars lead to traces", async () => {
  const exporter = new InMemorySpanExporter();
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }));
  const group = "billing/reports";
  const server = start(["server", ...here(), "--listen", "127.0.0.1:0", "--json"]);
  const [, at = ""] = await server.says(/"listening":"([^"]+)"/);
  await json("users", "create", "prometheus");
  const { secret } = await json("tokens", "create", "prometheus", "--user", "prometheus");
  const beganMs = Date.now();
  // Uses the rules' own expressions, but shortens the time for which each must hold.
  prometheus = await Prometheus.start(rulesText.replaceAll(/^( +for:) \S+$/gm, "$1 1s"), secret as string);
  const { query, ask, firing } = bound(prometheus);
  prometheus.scrape([at]);

  const front = carillon({ store: url, schema, scheduler: false, worker: false, handleSignals: false });
  towers.push(front);
  front.task("billing/report", { group }, () => undefined);
  front.task("remote", { group: "remote" }, () => undefined);
  await front.start();
  await front.enqueue("billing/report");
  const name = "CarillonGroupWithoutWorkers";
  // The group of the other task has no worker either, and its alert may come first.
  const own = async () => (await firing(name)).find(({ labels }) => labels.group === group);
  await until("it fires", async () => (await own()) !== undefined);
  const alert = await own();
  expect(alert?.labels).toMatchObject({ severity: "critical", carillon_namespace: "billing" });
  expect(alert?.annotations.summary).toBe(`No live worker takes the runs of the group ${group}`);

  const worker = start(["worker", "tasks.ts", ...here(), "--listen", "127.0.0.1:0", "--json"]);
  const remote = await remoteWorker(at, "remote");
  const library = await traced(group);
  const [, ownAt = ""] = await worker.says(/"listening":"([^"]+)".*worker is ready/);
  const linked = [library.listening as string, remote.listening as string];
  const addresses = [at, ownAt, ...linked];
  prometheus.scrape(addresses);
  await until("it ends", async () => (await firing(name)).length === 0);
  await library.enqueue("billing/hopeless");
  await front.enqueue("remote");
  const kinds = async () =>
    (await query("up == 1 and on (instance) carillon_info")).map(({ metric }) => metric.instance);
  await until("every process is scraped", async () => (await kinds()).length === addresses.length);
  expect((await kinds()).toSorted()).toEqual(addresses.toSorted());

  const holder = new pg.Client(url);
  await holder.connect();
  await holder.query("begin isolation level repeatable read");
  await holder.query("select count(*) from pg_class");
  try {
    await judged({ query, ask }, beganMs);
  } finally {
    await holder.end();
  }
  await expect.poll(async () => (await query("sum(carillon_exhausted_total)"))[0]?.value[1]).toBe("1");

  for (const metric of ["carillon_run_lateness_seconds", "carillon_attempt_seconds"]) {
    const series = () => {
      const times = { start: String(beganMs / 1_000), end: String(Date.now() / 1_000) };
      return ask<ExemplarSeries[]>("query_exemplars", { query: `${metric}_bucket`, ...times });
    };
    const places = async () => new Set((await series()).map(({ seriesLabels }) => seriesLabels.instance));
    await expect.poll(async () => [...(await places())].toSorted()).toEqual(linked.toSorted());
    const spans = exporter.getFinishedSpans().filter((span) => span.name.startsWith("run "));
    const known = spans.map((span) => ({
      trace_id: span.spanContext().traceId,
      run_id: String(span.attributes["carillon.run"]),
    }));
    for (const { exemplars } of await series())
      for (const { labels } of exemplars) expect(known).toContainEqual(labels);
  }
});

const bound = (one: Prometheus) => ({
  query: one.query.bind(one),
  ask: one.ask.bind(one) as Prometheus["ask"],
  firing: one.firing.bind(one),
});

/**
 * Checks that each name that the rules and the dashboard read is known, and that each expression of the dashboard has a result
 * with the labels of its legend.
 */
async function judged({ ask }: Pick<ReturnType<typeof bound>, "query" | "ask">, beganMs: number): Promise<void> {
  const targets = dashboard.panels.flatMap(({ title, targets: own = [] }: Panel) =>
    own.map((one) => ({ title, ...one })),
  );
  const variables = dashboard.templating.list.flatMap(({ definition }) => definition ?? []);
  const marks = dashboard.annotations.list.flatMap(({ expr }) => expr ?? []);
  const selected = variables.map((text) => /^label_values\((.*), (\w+)\)$/.exec(text) as RegExpExecArray);
  const read = new Set(
    [
      ...rules.map(({ expr }) => expr),
      ...targets.map(({ expr }) => expr),
      ...selected.map(([, of = ""]) => of),
      ...marks,
    ].flatMap(metricsOf),
  );
  expect(read.size).toBeGreaterThan(25);
  const unknown = async () => {
    const known = new Set(await ask<string[]>("label/__name__/values"));
    return [...read].filter((name) => !known.has(name));
  };
  await expect.poll(unknown).toEqual([]);
  for (const [, of = "", label = ""] of selected) {
    const values = await ask<string[]>(`label/${label}/values`, { "match[]": filled(of) });
    expect([of, values.length > 0]).toEqual([of, true]);
  }
  /** Returns the titles of the panels that have had no data since the test began. */
  const silent = async () => {
    const times = { start: String(beganMs / 1_000), end: String(Date.now() / 1_000), step: "1" };
    const empty: string[] = [];
    for (const { title, expr, legendFormat } of targets) {
      const { result } = await ask<{ result: Pick<Sample, "metric">[] }>("query_range", {
        query: filled(expr),
        ...times,
      });
      if (result.length === 0) empty.push(title);
      for (const { metric } of result)
        expect([title, Object.keys(metric)]).toEqual([title, expect.arrayContaining(legendOf(legendFormat))]);
    }
    return empty;
  };
  // The panel of failed calls stays empty, because no call of the store has failed.
  await expect.poll(async () => (await silent()).filter((title) => title !== "Failed calls")).toEqual([]);
  for (const mark of marks) await ask("query", { query: filled(mark) });
}
