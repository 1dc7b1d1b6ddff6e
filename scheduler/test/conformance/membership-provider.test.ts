/**
 * The tests take some 100 s: with each service, sessions of 1.5 s end because a connection was cut, hung or paused, other sessions must
 * last for 6 s, and one test cuts connections at random for six sessions. Members of one service would disturb each other, so the tests
 * run one by one.
 */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { seeded } from "../../src/base/random.ts";
import {
  longestTimeoutMs,
  type ProviderMember,
  type ProviderStage,
  providerDrivers,
  shownAs,
} from "../support/provider-stage.ts";
import { until } from "../support/store-stage.ts";

/** The longest wait in ms for an event that must happen eventually, even on a busy machine. */
const patienceMs = 60_000;
/**
 * Session timeout in ms of members that must stay alive while a busy machine delays this process. Tests that wait for the end of a session
 * use a short timeout instead.
 */
const steadyMs = 6_000;

describe.each(providerDrivers)("coordination provider on $title", (driver) => {
  let stage: ProviderStage;
  const open: ProviderMember[] = [];
  let sessions = 0;
  beforeAll(async () => {
    stage = await driver.open();
    // A service with new data may not be able to say yet which sessions have ended.
    const scout = await stage.make({ sessionTimeoutMs: steadyMs });
    await until("the service can tell who is gone", () => tells(scout), patienceMs);
    await scout.close();
  });
  afterEach(async () => {
    await Promise.all(open.splice(0).map((member) => member.close()));
  });
  afterAll(() => stage.close());

  const soon = (what: string, condition: () => boolean | Promise<boolean>) => until(what, condition, patienceMs);
  const mono = () => performance.now();

  interface Member extends ProviderMember {
    readonly id: number;
  }
  const make = async (sessionTimeoutMs = steadyMs, on = stage): Promise<Member> => {
    const member = await on.make({ sessionTimeoutMs });
    open.push(member);
    return Object.assign(member, { id: ++sessions });
  };
  /** Makes a member and waits until the service reports it as alive. */
  const join = async (sessionTimeoutMs = steadyMs, on = stage): Promise<Member> => {
    const member = await make(sessionTimeoutMs, on);
    member.provider.announce(shownAs(member.id));
    await soon("it is shown", () => isShown(member));
    return member;
  };
  const crowd = (count: number, sessionTimeoutMs = steadyMs, on = stage) =>
    Promise.all(Array.from({ length: count }, () => join(sessionTimeoutMs, on)));

  const isShown = ({ provider }: ProviderMember) => provider.shownUntil() > mono();
  const isFirst = ({ provider }: ProviderMember) => provider.sure() && provider.first();
  const ordered = (ids: Iterable<number>) => [...ids].sort((a, b) => a - b).join();
  const sees = (who: ProviderMember, ids: readonly number[]) => ordered(who.provider.shown() ?? []) === ordered(ids);
  const goneFor = (who: ProviderMember, ids: readonly number[]) => who.provider.gone(ids).catch((): number[] => []); // cannot tell yet
  const tells = (who: ProviderMember) =>
    who.provider.gone([0]).then(
      () => true,
      () => false, // rejects while the service does not know yet which sessions have ended
    );

  /** Checks the members until the returned function is called; that resolves with the violations and how often the observer replied. */
  const guard = (members: readonly Member[], observer?: ProviderMember) => {
    const wrong: string[] = [];
    let over = false;
    let answers = 0;
    const exclusive = () => {
      const first = members.filter(isFirst);
      if (first.length > 1) wrong.push(`both ${first.map(({ id }) => id).join(" and ")} were first`);
    };
    for (const member of members) member.provider.onChange(exclusive);
    const look = async () => {
      while (!over) {
        exclusive();
        const claims = members.map((member) => ({ id: member.id, until: member.provider.shownUntil() }));
        const gone = observer
          ? await observer.provider.gone(claims.map(({ id }) => id)).then(
              (ids) => {
                answers++;
                return new Set(ids);
              },
              () => new Set<number>(), // the observer's connection may be cut too
            )
          : new Set<number>();
        const now = mono();
        for (const { id, until } of claims) {
          if (gone.has(id) && until > now) wrong.push(`${id} was gone ${(until - now).toFixed(1)} ms too early`);
        }
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    };
    const looking = look();
    return async () => {
      over = true;
      await looking;
      return { wrong, answers };
    };
  };

  it("lists members that announced themselves, with their data", async () => {
    const [a, b] = [await make(), await make()];
    expect([a.provider.shownUntil(), a.provider.first(), a.provider.title]).toEqual([0, false, driver.title]);
    a.provider.announce(shownAs(a.id, { node: "élise", groups: ["x", "y"], version: "2.0" }));
    b.provider.announce(shownAs(b.id, { role: "worker" }));
    for (const who of [a, b]) await soon("both see both", () => sees(who, [a.id, b.id]));
    const described = shownAs(a.id, { node: "élise", groups: ["x", "y"], version: "2.0" });
    expect(await b.provider.described(a.id)).toEqual(described);
    expect(await b.provider.described(900_001)).toBeUndefined();
    expect(isShown(a) && a.provider.sure()).toBe(true);
    expect(a.provider.serviceId).toMatch(/./);
    expect(b.provider.serviceId).toBe(a.provider.serviceId);
    expect(a.provider.shownUntil()).toBeLessThan(mono() + steadyMs);
    await soon("a newcomer can tell who is gone", () => tells(b));
    expect(await goneFor(b, [a.id, b.id, 900_001])).toEqual([900_001]);
    expect(await goneFor(b, [])).toEqual([]);
  });

  it("lists a new session in place of the old one, and a change of its data", async () => {
    const [a, b] = await crowd(2);
    if (!a || !b) throw new Error("two were made");
    const next = ++sessions;
    a.provider.announce(shownAs(next));
    await soon("the new one is seen", () =>
      sees(
        b,
        [b.id, next].sort((x, y) => x - y),
      ),
    );
    await soon("the old one is gone", async () => (await goneFor(b, [a.id, next])).includes(a.id));
    await soon("it is shown", () => isShown(a));
    expect(await goneFor(b, [next])).toEqual([]);
    a.provider.announce(shownAs(next, { groups: ["other"] }));
    await soon("the change is seen", async () => (await b.provider.described(next))?.groups[0] === "other");
  });

  it("lists a live member indefinitely, and no longer lists a member that left", async () => {
    const [a, b] = await crowd(2);
    if (!a || !b) throw new Error("two were made");
    const began = mono();
    await soon("a timeout is over", () => {
      expect(isShown(a) && isShown(b)).toBe(true);
      return mono() > began + 1.3 * steadyMs;
    });
    expect(await b.provider.gone([a.id, b.id])).toEqual([]);
    await a.provider.leave();
    await soon("it is gone", async () => (await goneFor(b, [a.id])).length === 1);
    await soon("it is seen no more", () => sees(b, [b.id]));
    expect([a.provider.shownUntil() <= mono(), a.provider.first(), a.provider.sure()]).toEqual([true, false, false]);
    await a.provider.leave();
  });

  it("notifies listeners of changes", async () => {
    const [a, b] = [await join(stage.sessionTimeoutMs), await join()];
    const told: string[] = [];
    a.provider.onChange((what) => void told.push(what));
    a.provider.contend();
    await soon("it is told that it is first", () => a.provider.first() && told.includes("first"));
    await b.provider.leave();
    await soon("it is told that a member went", () => sees(a, [a.id]) && told.includes("members"));
    told.length = 0;
    a.cut();
    await soon("it is told that it cannot be sure", () => !a.provider.sure() && told.includes("sure"));
    await soon("it is told that it is no longer first", () => !a.provider.first() && told.includes("first"));
    await expect(a.provider.gone([b.id])).rejects.toMatchObject({ code: "COORDINATION_UNREACHABLE" });
    a.heal();
    await soon("it is first again", () => isFirst(a));
  });

  it.each(["cut", "hang"] as const)(
    "elects another leader, and not too early, when a connection is %s",
    async (how) => {
      const [a, b, c] = [await join(stage.sessionTimeoutMs), await join(), await join()];
      a.provider.contend();
      await soon("the one is first", () => isFirst(a));
      b.provider.contend();
      const end = guard([a, b], c);
      a[how]();
      await soon("the other is first", () => isFirst(b));
      expect([a.provider.first(), isShown(a)]).toEqual([false, false]);
      await soon("the one is gone", async () => (await goneFor(c, [a.id])).length === 1);
      const seenGone = mono();
      a.heal();
      await soon("the one is shown again", () => isShown(a) && sees(a, [a.id, b.id, c.id]));
      expect(a.provider.shownSince()).toBeGreaterThan(seenGone);
      await soon("it is not gone any more", async () => (await c.provider.gone([a.id])).length === 0);
      expect(isFirst(b)).toBe(true);
      await b.provider.stepDown();
      await soon("the one is first again", () => isFirst(a));
      expect(await end()).toMatchObject({ wrong: [] });
    },
  );

  it("keeps a member that was away for less than its timeout", async () => {
    const [a, b] = await crowd(2);
    if (!a || !b) throw new Error("two were made");
    a.provider.contend();
    await soon("it is first", () => isFirst(a));
    const end = guard([a, b], b);
    const since = a.provider.shownSince();
    a.cut();
    a.heal();
    await soon("it is shown and sure again", () => isShown(a) && a.provider.sure());
    expect((await end()).wrong).toEqual([]);
    expect(a.provider.shownSince()).toBe(since);
    expect(await goneFor(b, [a.id])).toEqual([]);
  });

  it("never reports a surely listed member as gone, nor two leaders, whichever member is paused and for how long", async () => {
    const seed = Number(process.env.CARILLON_SEED) || Math.floor(Math.random() * 2 ** 31);
    const random = seeded(seed);
    const observer = await join(stage.sessionTimeoutMs);
    const members = await crowd(4, stage.sessionTimeoutMs);
    for (const { provider } of members) provider.contend();
    const end = guard(members, observer);
    const { sessionTimeoutMs } = stage;
    const ends = mono() + 6 * sessionTimeoutMs;
    const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
    await Promise.all(
      members.map(async (member) => {
        while (mono() < ends) {
          await wait(random.next() * sessionTimeoutMs);
          const trouble = random.next();
          if (trouble < 0.6) member.pause();
          else if (trouble < 0.8) member.cut();
          else member.hang();
          await wait(random.next() * 1.8 * sessionTimeoutMs);
          if (trouble < 0.6) member.resume();
          else member.heal();
        }
      }),
    );
    await soon("all are shown again", () => members.every(isShown));
    await soon("one is first", () => members.some(isFirst));
    const { wrong, answers } = await end();
    expect({ seed, wrong }).toEqual({ seed, wrong: [] });
    expect(answers).toBeGreaterThan(20);
  });

  it.each(["restartService", "wipeService"] as const)("reconverges after %s", async (what) => {
    const observer = await join(stage.sessionTimeoutMs);
    const members = await crowd(3, stage.sessionTimeoutMs);
    for (const { provider } of members) provider.contend();
    await soon("one is first", () => members.some(isFirst));
    const ids = [...members.map(({ id }) => id), observer.id];
    const end = guard(members, observer);
    await stage[what]();
    await soon("gone is told again", () => tells(observer));
    await soon("all are shown", () => members.every(isShown) && [...members, observer].every((who) => sees(who, ids)));
    await soon("one is first again", () => members.some(isFirst));
    await soon(
      "nobody but a stranger is gone",
      async () => ordered(await goneFor(observer, [...ids, 900_001])) === "900001",
    );
    expect(await end()).toMatchObject({ wrong: [] });
    expect((await make()).provider.serviceId).toBe(observer.provider.serviceId);
  });

  /** No session ends during these tests, so each member learns of a change only by a message. */
  describe("with long sessions", () => {
    let lasting: ProviderStage;
    beforeAll(async () => {
      lasting = await driver.open();
      const founder = await lasting.make({ sessionTimeoutMs: longestTimeoutMs });
      await founder.close();
      await lasting.ages();
    });
    afterAll(() => lasting.close());

    it("has one leader, and the next one at once when that one steps down", async () => {
      const members = await crowd(3, longestTimeoutMs, lasting);
      const end = guard(members);
      for (const { provider } of members) provider.contend();
      await soon("one is first", () => members.some(isFirst));
      for (let turn = 0; turn < 6; turn++) {
        const first = members.find(isFirst);
        if (!first) throw new Error("nobody is first");
        const down = first.provider.stepDown();
        expect(first.provider.first()).toBe(false);
        await soon("another is first", () => members.some((other) => other !== first && isFirst(other)));
        await down;
        first.provider.contend();
      }
      expect(await end()).toMatchObject({ wrong: [] });
    });

    it("no longer lists a member that left", async () => {
      const leaver = await join(longestTimeoutMs, lasting);
      const observer = await join(stage.sessionTimeoutMs, lasting);
      await soon("it can tell who is gone", () => tells(observer));
      expect(await observer.provider.gone([leaver.id])).toEqual([]);
      await leaver.provider.leave();
      await soon("it is gone", async () => (await goneFor(observer, [leaver.id])).length === 1);
    });

    it("passes the leadership through fifty candidates, each leading once", async () => {
      const members = await Promise.all(Array.from({ length: 50 }, () => make(longestTimeoutMs, lasting)));
      const end = guard(members);
      for (const { provider } of members) provider.contend();
      const turns = new Set<number>();
      await soon("one is first", () => members.some(isFirst));
      while (turns.size < members.length) {
        const left = members.filter(({ id }) => !turns.has(id));
        await soon("the next one is first", () => left.some(isFirst));
        const first = left.find(isFirst);
        if (!first) continue;
        turns.add(first.id);
        await first.provider.stepDown();
      }
      expect(await end()).toMatchObject({ wrong: [] });
    });
  });
});
