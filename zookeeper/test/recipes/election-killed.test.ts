/** The leader is killed, or stopped for longer than its session. The next contender leads afterwards, and not at the same time. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { LeaderLatch } from "../../src/recipes/leader/latch.ts";
import { LeaderSelector } from "../../src/recipes/leader/selector.ts";
import { Ensemble } from "../../src/testing/ensemble.ts";
import { startJava } from "../support/java.ts";
import { ownPath } from "../support/servers.ts";
import { Contender } from "./contenders.ts";
import { Clients, endingSessionMs, until } from "./stage.ts";

/** Session timeout of contenders that are killed or stopped, in ms. Other clients use the default, which is longer. */
const sessionTimeoutMs = endingSessionMs;
const limitMs = 60_000;

describe("a killed leader", () => {
  let ensemble: Ensemble;
  let clients: Clients;
  let path: string;
  beforeAll(async () => {
    ensemble = await Ensemble.start({ tickTime: 100 });
  });
  afterAll(() => ensemble?.stop());
  beforeEach(() => {
    clients = new Clients(ensemble.connectString());
    path = ownPath("killed");
  });
  afterEach(() => clients.closeAll());

  /** Starts a contender in this process, queued behind the leader that will be killed. */
  async function latchBehind(): Promise<LeaderLatch> {
    const latch = new LeaderLatch(await clients.connect(), path, { id: "next" });
    await latch.start();
    await until("both are in line", async () => (await latch.participants()).length === 2);
    expect(latch.hasLeadership).toBe(false);
    return latch;
  }

  async function selectorBehind() {
    const led: bigint[] = [];
    const selector = new LeaderSelector(
      await clients.connect(),
      path,
      async ({ fence, signal }) => {
        led.push(fence);
        await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      },
      { id: "next" },
    );
    const running = selector.run();
    await until("both are in line", async () => (await selector.participants()).length === 2);
    expect(led).toEqual([]);
    return { selector, led, running };
  }

  const contender = (recipe: "latch" | "selector") =>
    Contender.start({ hosts: ensemble.connectString(), recipe, path, id: "first", sessionTimeoutMs });

  it("latch: this client follows this client", async () => {
    const first = await contender("latch");
    try {
      const fence = BigInt((await first.said("leads")).split(" ")[1] ?? "");
      const latch = await latchBehind();
      await first.kill();
      const leadership = await latch.awaitLeadership({ limitMs });
      expect(leadership?.fence).toBeGreaterThan(fence);
    } finally {
      await first.kill();
    }
  });

  it("selector: this client follows this client", async () => {
    const first = await contender("selector");
    try {
      const fence = BigInt((await first.said("leads")).split(" ")[1] ?? "");
      const { selector, led, running } = await selectorBehind();
      await first.kill();
      await until("the next leads", () => led.length === 1);
      expect(led[0]).toBeGreaterThan(fence);
      await selector.close();
      await running;
    } finally {
      await first.kill();
    }
  });

  for (const recipe of ["latch", "selector"] as const) {
    it(`${recipe}: a stopped leader no longer believes it leads when it continues`, async () => {
      const first = await contender(recipe);
      try {
        await first.said("leads");
        const latch = recipe === "latch" ? await latchBehind() : undefined;
        const behind = latch ? undefined : await selectorBehind();
        await first.said("ready");
        first.signal("SIGSTOP");
        await latch?.awaitLeadership({ limitMs });
        await until("the next leads", () => latch?.hasLeadership || behind?.led.length === 1);
        const taken = process.hrtime.bigint();
        first.signal("SIGCONT");
        const believed = BigInt((await first.said("lost")).split(" ")[1] ?? "");
        expect(believed).toBeGreaterThan(0n);
        expect(believed).toBeLessThan(taken);
        const line = async () => (await (latch ?? behind?.selector)?.participants())?.map(({ id }) => id);
        await until("it is in line again", async () => (await line())?.join() === "next,first");
        expect(first.lines.filter((said) => said.startsWith("leads")).length).toBe(1);
        await latch?.close();
        await behind?.selector.close();
        await behind?.running;
      } finally {
        await first.kill();
      }
    });
  }

  it("latch and selector: Java follows this client, and this client follows Java", async () => {
    await using java = await startJava(ensemble.connectString(), { sessionTimeout: sessionTimeoutMs });
    const latchPath = `${path}-latch`;
    const selectorPath = `${path}-selector`;
    const options = { hosts: ensemble.connectString(), id: "first", sessionTimeoutMs };
    const contenders = await Promise.all([
      Contender.start({ ...options, recipe: "latch", path: latchPath }),
      Contender.start({ ...options, recipe: "selector", path: selectorPath }),
    ]);
    try {
      await Promise.all(contenders.map((one) => one.said("leads")));
      const javaLatch = await java.make("latch", latchPath, "java");
      const javaSelector = await java.make("selector", selectorPath, "java", false);
      await javaLatch.do("start");
      await javaSelector.do("start");
      const zk = await clients.connect();
      const latch = new LeaderLatch(zk, latchPath, { id: "last" });
      let led = false;
      const selector = new LeaderSelector(
        zk,
        selectorPath,
        async () => {
          led = true;
        },
        { id: "last" },
      );
      await until("Java is in line", async () => (await latch.participants()).length === 2);
      await until("Java is in line", async () => (await selector.participants()).length === 2);
      await latch.start();
      const running = selector.run();
      await until("all are in line", async () => (await selector.participants()).length === 3);
      expect((await latch.participants()).map(({ id }) => id)).toEqual(["first", "java", "last"]);
      await Promise.all(contenders.map((one) => one.kill()));
      await Promise.all([javaLatch.next("leader"), javaSelector.next("take")]);
      expect(latch.hasLeadership || led).toBe(false);
      await java.kill();
      expect(await latch.awaitLeadership({ limitMs })).toBeDefined();
      await until("ours was selected", () => led);
      await latch.close();
      await running;
    } finally {
      await Promise.all(contenders.map((one) => one.kill()));
    }
  });

  it("latch and selector: fences increase even if the servers have lost all data", async () => {
    const zk = await clients.connect({ sessionTimeoutMs });
    const latch = new LeaderLatch(zk, path, { id: "one" });
    await latch.start();
    const before = await latch.awaitLeadership({ limitMs });
    const fences: bigint[] = [];
    const selector = new LeaderSelector(
      zk,
      `${path}-selector`,
      async ({ fence, signal }) => {
        fences.push(fence);
        await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      },
      { autoRequeue: true },
    );
    const running = selector.run();
    await until("it is selected", () => fences.length === 1);
    await ensemble.wipeAll();
    await until("it knows", () => before?.signal.aborted);
    const after = await latch.awaitLeadership({ limitMs });
    expect(after?.fence).toBeGreaterThan(before?.fence ?? 0n);
    await until("it is selected again", () => fences.length >= 2);
    expect(fences.at(-1)).toBeGreaterThan(fences[0] ?? 0n);
    await latch.close();
    await selector.close();
    await running;
  });
});
