/** A handler in its own module, which does what the `act` of its payload says. For comparison, tests also run it without isolation. */
import { isMainThread, threadId } from "node:worker_threads";
import { context, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { BasicTracerProvider } from "@opentelemetry/sdk-trace-base";
import { CarillonError, carillon } from "carillon";
import pg from "pg";

const busy = (ms = Number.POSITIVE_INFINITY) => {
  for (const end = performance.now() + ms; performance.now() < end; );
};
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
class OwnError extends TypeError {
  name = "OwnError";
  code = "E_OWN";
  detail = { of: [1, 2] };
}
/** Values to throw that are not instances of Error. */
const thrown = { text: "only a text", object: { code: "E_PLAIN", message: "no error" }, circle: { message: "round" } };
thrown.circle.self = thrown.circle;

const acts = {
  fields: ({ id, task, slot, due, attempt, key, shard, fence, state }, payload) => ({
    task,
    slot,
    attempt,
    key,
    shard,
    state,
    ids: [typeof id, typeof fence, due instanceof Date],
    payload,
    at: payload.at instanceof Date,
  }),
  where: () => ({ pid: process.pid, isMainThread, threadId }),
  async tells({ log, progress }) {
    log.info("said", { error: new RangeError("too far"), big: 5n });
    log.warn("warned");
    progress({ done: 1 });
    await sleep(10);
    return new Date(0);
  },
  async keeps(run) {
    if (run.attempt === 1) {
      await run.saveState({ page: 7 });
      throw new Error(`kept ${JSON.stringify(run.state)}`);
    }
    return run.state;
  },
  async spawns(run) {
    const first = await run.spawn("child", { n: 1 }, { key: "one" });
    const again = await run.spawn("child", { n: 1 }, { key: "one" });
    return run.fanOut([{ task: "child", payload: { n: 2 } }], { join: "joins", payload: first.runId === again.runId });
  },
  joins: async (run, { same }) => ({
    same,
    inputs: (await run.inputs()).map(({ task, outcome, result }) => ({ task, outcome, result })),
  }),
  goesOn: (run, { left }) =>
    left > 0 ? run.continueAs({ act: "goesOn", left: left - 1 }, { state: { left } }) : { state: run.state },
  putsOff: (run) => {
    if (run.attempt <= 2) return run.snooze(5);
    throw run.retryIn(5, { cause: new OwnError("asked") });
  },
  async completes(run, { url, schema, rollBack }) {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await client.query("begin");
    await client.query(`insert into ${schema}.own values ($1)`, [run.id]);
    await run.complete(client, { completed: true });
    await client.query(rollBack ? "rollback" : "commit");
    await client.end();
    if (rollBack) throw new Error("rolled back");
  },
  async locks(_run, { url, schema }) {
    const tower = carillon({ store: url, schema, handleSignals: false });
    try {
      return await tower.lock("isolated").run(({ fence }) => typeof fence);
    } finally {
      await tower.stop();
    }
  },
  asksUnknown: (run) => run.spawn("nobody"),
  async traced() {
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
    trace.setGlobalTracerProvider(new BasicTracerProvider());
  },
  tracedId: () => trace.getActiveSpan()?.spanContext().traceId ?? null,

  throwsOwn() {
    throw new OwnError("mine", { cause: new RangeError("deeper") });
  },
  throwsCoded() {
    throw new CarillonError("HTTP_FAILED", "try later", { hint: "wait", retryAfterMs: Number.POSITIVE_INFINITY });
  },
  throwsText() {
    throw thrown.text;
  },
  throwsObject() {
    throw thrown.object;
  },
  throwsCircle() {
    throw thrown.circle;
  },
  returnsMap: () => ({ map: new Map() }),
  returnsMuch: () => "x".repeat(300_000),
  returnsNothing: () => undefined,

  async obeys(run) {
    if (!run.signal.aborted) await new Promise((resolve) => run.signal.addEventListener("abort", resolve));
    run.log.info("obeyed", { reason: run.signal.reason.code });
    run.signal.throwIfAborted();
  },
  computes: (_run, { ms }) => busy(ms),
  async begins(run, { ms }) {
    run.log.info("begun", { pid: process.pid });
    busy(ms);
  },
  exits: () => process.exit(7),
  async aborts() {
    process.abort();
  },
  async killed() {
    process.kill(process.pid, "SIGKILL");
    await sleep(60_000);
  },
  async timer() {
    setTimeout(() => {
      throw new OwnError("out of a timer");
    });
    await sleep(60_000);
  },
  async fills() {
    const all = [];
    for (;;) {
      all.push(Array.from({ length: 10_000 }, (_, at) => ({ at })));
      if (all.length % 10 === 0) await sleep(0);
    }
  },
};

export default (run, payload) => acts[payload.act](run, payload);
