import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { at, Patroni } from "../support/patroni.ts";
import { until } from "../support/store-stage.ts";
import { WatchedNodes } from "../support/watched-nodes.ts";

/**
 * Two nodes on three PostgreSQL servers under Patroni, which fails over by itself. One cluster goes through all tests in order, so each
 * test begins in the state in which the previous one ended. After each, every run that the nodes have acknowledged since the beginning must
 * have happened exactly once.
 */
function underPatroni() {
  let patroni: Patroni;
  let watched: WatchedNodes;
  beforeAll(async () => {
    patroni = await Patroni.start();
    // Session timeout. A node abandons an unanswered request after a third of this time; Patroni then needs 6 s or more to promote
    // another server.
    watched = new WatchedNodes(patroni.url, "24s");
    await watched.start();
    await goesOn(Date.now());
  });
  afterAll(async () => {
    // If the start failed, these variables are not set.
    await (watched as WatchedNodes | undefined)?.stop();
    await (patroni as Patroni | undefined)?.close();
  });

  /** Checks that new runs start, that slots fire, and that every run whose enqueue was acknowledged has started. */
  async function goesOn(sinceMs: number): Promise<void> {
    const fresh = await watched.enqueue("once");
    await until("a new run starts", () => watched.began.some(({ run }) => run === fresh), 60_000);
    await until(
      "slots fire",
      () => watched.began.filter(({ task, atMs }) => task === "tick" && atMs > sinceMs).length > 5,
      60_000,
    );
    await until("all that was acknowledged starts", () => watched.unseen().length === 0, 60_000);
    await until("every slot fires, up to the newest", () => watched.gaps() === 0, 60_000);
    watched.expectOnce();
  }
  const enqueueMany = async () => {
    for (let n = 0; n < 40; n++) await watched.enqueue("once");
  };
  const lastRecovery = async () => {
    const leader = await patroni.leader();
    return (
      await at(leader, "select number, runs, verdicts, missing from carillon.recovery order by number desc limit 1")
    )[0];
  };
  return { goesOn, enqueueMany, lastRecovery, patroni: () => patroni, watched: () => watched };
}

describe("PostgreSQL under Patroni", () => {
  const { goesOn, lastRecovery, enqueueMany, patroni } = underPatroni();

  it("a switchover causes a short interruption and needs no recovery", async () => {
    const leader = await patroni().leader();
    await patroni().ask(leader, "POST", "switchover", { leader: leader.name });
    await patroni().successor(leader);
    await goesOn(Date.now());
    expect(await lastRecovery()).toEqual({ number: 1, runs: 0, verdicts: 0, missing: [] });
    await until("the former leader follows", async () => (await patroni().those("replica")).length === 2, 60_000);
  });

  it("a leader that freezes past its TTL is replaced, and accepts no writes when it resumes", async () => {
    const leader = await patroni().leader();
    leader.signal("SIGSTOP");
    await patroni().successor(leader);
    await goesOn(Date.now());
    leader.signal("SIGCONT");
    await until("it follows", async () => (await patroni().those("replica")).length === 2, 60_000);
    await goesOn(Date.now());
  });

  it("with a synchronous standby, the leader's death loses no data and needs no recovery", async () => {
    const leader = await patroni().leader();
    await patroni().ask(leader, "PATCH", "config", { synchronous_mode: true });
    await until("one is synchronous", async () => (await patroni().those("synchronous")).length === 1, 60_000);
    await enqueueMany();
    leader.signal("SIGKILL");
    await patroni().successor(leader);
    await goesOn(Date.now());
    expect(await lastRecovery()).toMatchObject({ runs: 0, verdicts: 0, missing: [] });
  });
});

describe("PostgreSQL under Patroni, asynchronous", () => {
  const { goesOn, lastRecovery, enqueueMany, patroni, watched } = underPatroni();

  it("writes acknowledged while the leader stops waiting for its standby are recorded, and restored after it dies", async () => {
    const leader = await patroni().leader();
    await patroni().ask(leader, "PATCH", "config", { synchronous_mode: true });
    await until("one is synchronous", async () => (await patroni().those("synchronous")).length === 1, 60_000);
    await enqueueMany();
    await patroni().ask(leader, "PATCH", "config", { synchronous_mode: null });
    leader.line.stall();
    await watched().enqueue("once"); // The enqueue is acknowledged only once Patroni has turned off synchronous mode.
    await enqueueMany();
    leader.signal("SIGKILL");
    await patroni().successor(leader);
    await goesOn(Date.now());
    expect((await lastRecovery())?.runs).toBeGreaterThan(10);
  });
});
