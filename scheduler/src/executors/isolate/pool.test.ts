import { AsyncLocalStorage } from "node:async_hooks";
import { beforeEach, describe, expect, it } from "vitest";
import { VirtualClock } from "../../../test/support/virtual-clock.ts";
import { CarillonError } from "../../base/errors.ts";
import { silentLog } from "../../base/log.ts";
import type { Run } from "../../run/handler.ts";
import type { FromHost, ToHost } from "./messages.ts";
import type { PlaceOptions } from "./places.ts";
import { Pool } from "./pool.ts";
import { sent } from "./thrown.ts";

/** A simulated host that the test controls. */
interface Fake {
  told: ToHost[];
  says: (message: FromHost) => void;
  gone: PlaceOptions["gone"];
  isEnded: boolean;
}

let hosts: Fake[];
let clock: VirtualClock;
beforeEach(() => {
  hosts = [];
  clock = new VirtualClock(0);
});
const pool = (most: number) =>
  new Pool({
    place: "thread",
    memoryMb: 64,
    most,
    log: silentLog,
    clock,
    open: ({ message, gone }) => {
      const fake: Fake = { told: [], says: message, gone, isEnded: false };
      hosts.push(fake);
      const end = () => {
        fake.isEnded = true;
      };
      return { send: (told) => void fake.told.push(told), end };
    },
  });
const host = (at: number) => hosts[at] as Fake;
const ready = (at: number) => host(at).says({ kind: "loaded", faults: [] });
const stops: AbortController[] = [];
function run(of: Pool, id: number, log: object = { error: () => undefined }) {
  const controller = new AbortController();
  stops[id] = controller;
  const given = {
    id,
    task: "t",
    slot: null,
    due: new Date(0),
    log,
    signal: controller.signal,
  };
  return of.run({
    run: given as unknown as Run,
    payload: id,
    module: "file:///m.js",
    killAfterMs: 100,
    trace: undefined,
  });
}
/** The ids of the runs that the host with this index received. */
const givenTo = (at: number) => host(at).told.flatMap((told) => (told.kind === "run" ? [told.fields.id] : []));
const turnOf = (at: number) => host(at).told.findLast((told) => told.kind === "run")?.turn ?? -1;
const ends = (at: number, text = "1") => host(at).says({ kind: "ended", turn: turnOf(at), text });
const live = () => hosts.filter(({ isEnded }) => !isEnded).length;

describe("a pool of hosts", () => {
  it("handles a run's messages in the async context of that run, whichever run started the host", async () => {
    const trace = new AsyncLocalStorage<string>();
    const seen: [number, string | undefined][] = [];
    const of = pool(1);
    const started = trace.run("of the start", () => of.start());
    // A port delivers messages in the context in which it was made.
    const inStart = trace.run("of the start", () => AsyncLocalStorage.snapshot());
    inStart(() => ready(0));
    await started;
    for (const id of [1, 2]) {
      const log = { info: () => void seen.push([id, trace.getStore()]) };
      const ended = trace.run(`of run ${id}`, () => run(of, id, log));
      inStart(() => host(0).says({ kind: "log", turn: turnOf(0), level: "info", message: "", fields: null }));
      inStart(() => ends(0));
      await ended;
    }
    expect(seen).toEqual([
      [1, "of run 1"],
      [2, "of run 2"],
    ]);
    of.close();
  });

  it("keeps one host ready, prefers the most recently used, and ends unneeded hosts after a minute", async () => {
    const of = pool(10);
    const started = of.start();
    expect(hosts).toHaveLength(1);
    ready(0);
    expect((await started).size).toBe(0);
    const first = run(of, 1);
    expect(givenTo(0)).toEqual([1]);
    expect(hosts).toHaveLength(2);
    ready(1);
    const second = run(of, 2);
    expect(givenTo(1)).toEqual([2]);
    ready(2);
    ends(0);
    ends(1);
    expect(await Promise.all([first, second])).toEqual([1, 1]);
    void run(of, 3);
    expect(givenTo(1)).toEqual([2, 3]);
    ends(1);
    await clock.advance(125_000);
    expect(live()).toBe(1);
    expect(of.size).toBe(1);
  });

  it("starts at once where a run has brought a host already", async () => {
    const of = pool(1);
    const ran = run(of, 1);
    ready(0);
    expect((await of.start()).size).toBe(0);
    ends(0);
    expect(await ran).toBe(1);
    expect((await of.start()).size).toBe(0);
    expect(hosts).toHaveLength(1);
    of.close();
    const again = of.start();
    ready(1);
    expect((await again).size).toBe(0);
  });

  it("has at most its maximum of hosts, and further runs wait in order", () => {
    const of = pool(1);
    void of.start();
    ready(0);
    for (const id of [1, 2, 3]) void run(of, id);
    expect(hosts).toHaveLength(1);
    ends(0);
    ends(0);
    expect(givenTo(0)).toEqual([1, 2, 3]);
  });

  it("forwards the abort reason to the host, ends the host later, and meanwhile starts another", async () => {
    const of = pool(1);
    void of.start();
    ready(0);
    const stopped = run(of, 1);
    const waiting = run(of, 2);
    const reason = new CarillonError("TIMEOUT", "too long");
    stops[1]?.abort(reason);
    expect(host(0).told.at(-1)).toMatchObject({ kind: "abort", reason: sent(reason) });
    expect(hosts).toHaveLength(2);
    ready(1);
    expect(givenTo(1)).toEqual([2]);
    await clock.advance(101);
    await expect(stopped).rejects.toMatchObject({
      code: "TIMEOUT",
      message: expect.stringContaining("its thread was ended"),
    });
    expect(host(0).isEnded).toBe(true);
    // The host was dropped already, so the later report of its end must have no effect.
    host(0).gone({ outOfMemory: false, how: "exited with code 1" });
    ends(1);
    expect(await waiting).toBe(1);
    expect(of.size).toBe(1);
  });

  it("keeps its maximum if an aborted host ends its run by itself", async () => {
    const of = pool(1);
    void of.start();
    ready(0);
    const obeys = run(of, 1);
    stops[1]?.abort(new CarillonError("CANCELLED", "by hand"));
    ready(1);
    host(0).says({ kind: "ended", turn: turnOf(0), thrown: { is: "reason" } });
    await expect(obeys).rejects.toMatchObject({ code: "CANCELLED" });
    expect(live()).toBe(1);
    await clock.advance(1_000);
    expect(of.size).toBe(1);
  });

  it("rejects a run that is aborted while or before it waits", async () => {
    const of = pool(1);
    void of.start();
    const waits = run(of, 1);
    stops[1]?.abort(new CarillonError("CANCELLED", "by hand"));
    await expect(waits).rejects.toMatchObject({ code: "CANCELLED" });
    ready(0);
    expect(givenTo(0)).toEqual([]);
    expect(hosts).toHaveLength(1);
  });

  it("fails the run of a host that ends by itself, and gives the next run another host", async () => {
    const of = pool(2);
    void of.start();
    ready(0);
    const crashed = run(of, 1);
    ready(1);
    const full = run(of, 2);
    const next = run(of, 3);
    host(0).says({ kind: "crashed", thrown: sent(new TypeError("loose")) });
    host(0).gone({ outOfMemory: false, how: "exited with code 1" });
    host(1).gone({ outOfMemory: true, how: "ended" });
    await expect(crashed).rejects.toMatchObject({ code: "HANDLER_CRASHED", message: expect.stringContaining("loose") });
    await expect(full).rejects.toMatchObject({ code: "HANDLER_MEMORY", message: expect.stringContaining("64 MB") });
    ready(2);
    ends(2);
    expect(await next).toBe(1);
  });

  it("fails one run for each failed start, fails its own start, and then can start again", async () => {
    const of = pool(1);
    const started = of.start();
    host(0).gone({ outOfMemory: false, how: "exited with code 3" });
    await expect(started).rejects.toMatchObject({ code: "HANDLER_CRASHED" });
    const [first, second] = [run(of, 1), run(of, 2)];
    host(1).gone({ outOfMemory: false, how: "exited with code 3" });
    await expect(first).rejects.toMatchObject({ code: "HANDLER_CRASHED" });
    ready(2);
    ends(2);
    expect(await second).toBe(1);
  });

  it("fails its runs when it is closed, and can be started again", async () => {
    const of = pool(1);
    void of.start();
    ready(0);
    const some = [run(of, 1), run(of, 2)];
    of.close();
    for (const one of [...some, run(of, 3)]) await expect(one).rejects.toMatchObject({ code: "STOPPED" });
    expect(live()).toBe(0);
    const again = of.start();
    ready(1);
    await again;
    void run(of, 4);
    expect(givenTo(1)).toEqual([4]);
  });

  it("refuses a payload that cannot be cloned, and keeps using the host", async () => {
    const of = pool(1);
    void of.start();
    ready(0);
    const { told } = host(0);
    const push = told.push;
    told.push = () => {
      throw new DOMException("a function could not be cloned", "DataCloneError");
    };
    await expect(run(of, 1)).rejects.toMatchObject({ code: "PAYLOAD_INVALID" });
    told.push = push;
    void run(of, 2);
    expect(givenTo(0)).toEqual([2]);
  });
});
