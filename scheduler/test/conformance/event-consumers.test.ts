import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Clock } from "../../src/base/clock.ts";
import type { Lock } from "../../src/cluster/locks.ts";
import { carillon } from "../../src/library/carillon.ts";
import { serveEvents } from "../../src/library/events/consumer.ts";
import type { Codecs } from "../../src/library/payloads/codecs.ts";
import type { EventPlace } from "../../src/store/event-store.ts";
import { ApiStage } from "../support/api-stage.ts";
import { everyPostgres, postgres } from "../support/servers.ts";
import {
  dayMs,
  openStage,
  recordingLog,
  type Stage,
  settlement,
  succeededVerdict,
  until,
} from "../support/store-stage.ts";
import { type Posted, WebhookReceiver } from "../support/webhook-receiver.ts";

const stage = new ApiStage();
const receiver = new WebhookReceiver();
beforeAll(() => stage.open());
afterAll(async () => {
  await stage.close();
  await receiver.close();
});

const runOf = ({ raw }: Posted) => (JSON.parse(raw) as { data: { run: number } }).data.run;
const runsPosted = () => receiver.posted.map(runOf);
const runsTaken = () => receiver.posted.filter(({ status }) => status === 200).map(runOf);

describe("named consumers of events", () => {
  test("show which delivery fails, and get the events since a time again, or only those after it", async () => {
    const url = await receiver.listen();
    const { log } = recordingLog();
    const store = { store: postgres().url, schema: stage.schema };
    const tower = carillon({ ...store, handleSignals: false, drain: 0, log, webhooks: { billing: { url } } });
    stage.servers.push(tower);
    tower.task("bill", {}, () => null);
    await tower.start();
    const api = stage.client("operator");
    const only = async () => (await api.listEventConsumers()).consumers;
    const ended = async () => (await tower.enqueue("bill", null)).runId;
    expect(await only()).toMatchObject([{ name: "webhook/billing", failing: null }]);

    const began = new Date((await stage.store.clock()).ms - 60_000).toISOString();
    const first = await ended();
    await until("the first event came", () => runsPosted().includes(first), 60_000);
    receiver.status = 500;
    const second = await ended();
    // The pause after the third attempt is 4 s, so the restart below happens during the pause.
    await until("the failure is stored", async () => ((await only())[0]?.failing?.attempt ?? 0) >= 3, 60_000);
    const [failing] = await only();
    expect(failing?.failing).toMatchObject({
      type: "run.succeeded",
      run: second,
      task: "bill",
      error: expect.stringContaining("500"),
    });
    expect(Date.parse(failing?.failing?.again as string)).toBeGreaterThan(Date.parse(failing?.failing?.at as string));
    expect(failing?.failing?.time, "the run's end, not that of the delivery").toBe(
      (await api.getRun({ run: second })).ended,
    );
    expect(await stage.client("viewer").listEventConsumers()).toMatchObject({
      consumers: [{ failing: { run: second } }],
    });
    const fromThere = await api.redeliverEvents({ consumer: "webhook/billing" });
    expect(fromThere).toMatchObject({ place: failing?.place, failing: null });
    receiver.status = 200;
    await until("it is taken", () => runsTaken().includes(second), 60_000);
    const beyond = await ended();
    await until("a later event came", () => runsTaken().includes(beyond), 60_000);
    const isBeyond = ({ place }: { place: string | null }) =>
      Date.parse(place ?? "") > Date.parse(failing?.place ?? "");
    await until("the position is beyond it", async () => (await only()).some(isBeyond), 60_000);
    expect(runsTaken(), "no event comes twice").toEqual([first, second, beyond]);
    expect((await only())[0]?.failing).toBeNull();

    receiver.posted.length = 0;
    const again = await api.redeliverEvents({ consumer: "webhook/billing", since: began, reason: "lost them" });
    expect(again).toMatchObject({ place: began, failing: null });
    // The process that serves the consumer sees with its next event that the position has changed: it may post that event before it
    // begins anew, and posts the event again in its place behind the others.
    const third = await ended();
    await until(
      "all came again, in order",
      () => runsPosted().join().endsWith([first, second, beyond, third].join()),
      60_000,
    );
    const [entry] = (await stage.client().listAudit({ about: "cluster", named: "webhook/billing" })).items;
    expect(entry).toMatchObject({ act: "redeliver", why: "lost them", after: { placeMs: Date.parse(began) } });

    // Delivery can be moved past an event that the receiver refuses for ever.
    receiver.status = 500;
    const refused = await ended();
    await until("it is refused", async () => (await only())[0]?.failing?.run === refused, 60_000);
    const refusedMs = (await stage.store.clock()).ms;
    const past = new Date(refusedMs + 1).toISOString();
    await until("this time has passed", async () => (await stage.store.clock()).ms > refusedMs + 1_000, 60_000);
    await api.redeliverEvents({ consumer: "webhook/billing", since: past });
    receiver.status = 200;
    const last = await ended();
    await until("a later event came", () => runsPosted().includes(last), 60_000);
    expect((await only())[0]?.failing).toBeNull();
    await tower.stop();
  });

  test("are for callers with a right everywhere; an unknown one and a receiver of the audit log are refused", async () => {
    const since = "2026-11-30T00:00:00Z";
    await stage.store.events.enrol("audit/all", { seq: 0 }, 9e12);
    for (const consumer of ["webhook/nowhere", "audit/all"])
      await expect(stage.client().redeliverEvents({ consumer, since })).rejects.toMatchObject({
        code: "CONSUMER_UNKNOWN",
      });
    expect((await stage.client().listEventConsumers()).consumers[0]).toMatchObject({ name: "audit/all", place: null });
    const later = new Date((await stage.store.clock()).ms + 3_600_000).toISOString();
    const early = stage.client().redeliverEvents({ consumer: "webhook/billing", since: later });
    await expect(early).rejects.toMatchObject({
      code: "OPTION_INVALID",
      path: "since",
      hint: expect.stringContaining("by the store's clock"),
    });
    const theirs = stage.clientOf(await stage.token("admin", { where: ["theirs"] }));
    await expect(theirs.listEventConsumers()).rejects.toMatchObject({ code: "ACCESS_DENIED" });
    const asked = { consumer: "webhook/billing", since };
    for (const refused of [theirs, stage.client("viewer")])
      await expect(refused.redeliverEvents(asked)).rejects.toMatchObject({ code: "ACCESS_DENIED" });
  });
});

describe.each(everyPostgres())("a consumer of events in the store, $title", (server) => {
  let stage: Stage;
  /** Added to the stage's time: each pause lets six hours pass. */
  let passedMs = 0;
  beforeAll(async () => {
    stage = await openStage(server);
  });
  afterAll(() => stage.close());

  const now = () => stage.nowMs + passedMs;
  const clock: Clock = {
    monotonic: () => passedMs,
    wall: now,
    after(_ms, fire) {
      passedMs += dayMs / 4;
      const handle = setImmediate(fire);
      return () => clearImmediate(handle);
    },
  };
  const types = ["run.succeeded"] as const;

  /** Creates an event for a new consumer, and serves the consumer until the handler aborts `ending`. */
  async function serve(name: string, handler: (ending: AbortController) => Promise<void>): Promise<void> {
    const { events } = stage.store;
    const task = await stage.task(name);
    const { place } = await events.want(types, now() + 7 * dayMs, null, now());
    await events.enrol(name, place, now() + 7 * dayMs);
    await stage.enqueue(task);
    const session = await stage.session("worker");
    const [run] = await stage.claim(session, [task]);
    if (!run) throw new Error("no run was claimed");
    await stage.store.claims.settle(session, [settlement(run, succeededVerdict, stage.nowMs)], stage.nowMs);
    await serveAgain(name, handler);
  }
  async function serveAgain(name: string, handler: (ending: AbortController) => Promise<void>): Promise<void> {
    const { events } = stage.store;
    const served = await events.serve<EventPlace>(name);
    if (!served) throw new Error(`there is no consumer ${name}`);
    const { log } = recordingLog();
    const codecs = { opened: async (stored: unknown) => stored } as unknown as Codecs;
    const lock = null as unknown as Lock;
    const ending = new AbortController();
    const of = {
      name,
      filter: { types },
      tx: false,
      handler: () => handler(ending),
      events,
      lock,
      clock,
      now,
      log,
      codecs,
    };
    await serveEvents(of, served, ending.signal);
  }
  const consumerOf = async (name: string) =>
    (await stage.store.events.consumers()).find((consumer) => consumer.name === name);

  test("shows a failed delivery until the event is handled, also while the next process begins", async () => {
    let seen: unknown;
    await serve("begun", async (ending) => {
      ending.abort();
      throw new Error("not now");
    });
    // Simulates another process that recorded a failure before this one serves the consumer.
    const { events } = stage.store;
    const { epoch } = (await events.serve("begun")) as { epoch: number };
    const failing = { type: types[0], runId: 1, task: "begun", attempt: 3, error: "no", atMs: 1, againMs: 2 };
    expect(await events.failed("begun", epoch, failing, 0)).toBe(true);
    await serveAgain("begun", async (ending) => {
      seen ??= (await consumerOf("begun"))?.failing;
      ending.abort();
    });
    expect(seen).toEqual(failing);
    expect((await consumerOf("begun"))?.failing).toBeNull();
  });

  test("that fails for more than a week is kept, and so is the recording of its events", async () => {
    let failed = 0;
    await serve("failing", async (ending) => {
      failed++;
      if (passedMs > 8 * dayMs) ending.abort();
      throw new Error("not now");
    });
    expect(failed).toBeGreaterThan(30);
    expect((await consumerOf("failing"))?.untilMs).toBeGreaterThan(now());
    const { wanted } = await stage.one<{ wanted: number }>("select max(until_ms) as wanted from $s.event_kind");
    expect(wanted).toBeGreaterThan(now());
  });
});
