/** Tests roll-outs at the store: processes of releases start, stop and crash in any order, and time is a parameter. See task/release.ts. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Random, seeded } from "../../src/base/random.ts";
import { edited } from "../../src/task/edits.ts";
import { codeOf, type Release, releaseOf } from "../../src/task/release.ts";
import { defineTask, type TaskDefinition } from "../../src/task/task.ts";
import type { BroughtTask } from "../../src/task/task-store.ts";
import { rounds, seed } from "../support/long.ts";
import { everyPostgres } from "../support/servers.ts";
import { openStage, type Stage } from "../support/store-stage.ts";

const graceMs = 60_000;

describe.each(everyPostgres())(`releases on $title (seed ${seed})`, (server) => {
  let stage: Stage;
  let nowMs: number;
  let tasks = 0;
  let processes = 0;
  beforeAll(async () => {
    stage = await openStage(server);
    nowMs = stage.nowMs;
  });
  afterAll(() => stage.close());

  /** Returns a new task name, and a function that makes its definition in the code of a release. */
  const task = () => {
    const name = `released-${++tasks}`;
    return { name, of: (description: string) => defineTask(name, { description }) };
  };

  class Process {
    readonly release: Release;
    readonly #definitions: readonly TaskDefinition[];
    #sessionId: number | undefined;

    constructor(label: string, ...definitions: TaskDefinition[]) {
      this.release = releaseOf(label, definitions);
      this.#definitions = definitions;
    }

    get lives(): boolean {
      return this.#sessionId !== undefined;
    }

    /** Stores the definitions of this process's code without joining the cluster, as a process that only enqueues does. */
    async bring(): Promise<BroughtTask[]> {
      const change = { author: this.release.name, reason: "defined in code", nowMs };
      return stage.store.tasks.saveAll(this.#definitions, change, { release: this.release, graceMs });
    }

    async start(): Promise<this> {
      const settings = { retentionMs: 1, horizonMs: 1, claimAheadMs: 1, release: this.release.name };
      const process = { role: "node" as const, host: "here", pid: 1, version: "0", timeoutMs: 6_000, settings };
      const opened = await stage.store.sessions.open({ node: `process-${++processes}`, ...process }, nowMs);
      if (!("sessionId" in opened)) throw new Error("the name is taken");
      this.#sessionId = opened.sessionId;
      await this.bring();
      return this;
    }

    async end(): Promise<void> {
      const sessionId = this.#sessionId as number;
      this.#sessionId = undefined;
      await stage.store.sessions.end(sessionId, null, nowMs, "stopped");
    }
  }

  /** Gives tasks without a backing release another definition, as the leader does four times per grace time. */
  const look = async () => stage.store.tasks.adoptLeft(graceMs, { author: "leader", reason: "", nowMs });
  const pass = async (ms: number) => {
    for (const endMs = nowMs + ms; nowMs < endMs; ) {
      nowMs = Math.min(nowMs + graceMs / 4, endMs);
      await look();
    }
  };
  const inForce = async (name: string) => (await stage.store.tasks.byName(name)).definition.description;
  const versions = async (name: string) => (await stage.store.tasks.byName(name)).version;
  const endAll = async (...all: Process[]) => {
    for (const process of all) if (process.lives) await process.end();
  };

  it("an old process that restarts in a roll-out does not restore its definition; a roll-back does", async () => {
    const { name, of } = task();
    const old = [1, 2, 3].map(() => new Process("1.1", of("old")));
    for (const process of old) await process.start();
    const young = await new Process("1.1", of("young")).start();
    expect(await inForce(name)).toBe("young");
    await old[0]?.end();
    await old[0]?.start();
    expect(await inForce(name), "an old process has restarted").toBe("young");
    expect(
      (await old[0]?.bring())?.map(({ isOthers }) => isOthers),
      "which is told",
    ).toEqual([true]);
    expect((await young.bring()).map(({ isOthers }) => isOthers)).toEqual([undefined]);
    await pass(10 * graceMs);
    expect([await inForce(name), await versions(name)]).toEqual(["young", 2]);
    expect(await stage.store.tasks.releasesOf(name)).toMatchObject([
      { name: young.release.name, isInForce: true, nodes: [expect.any(String)] },
      { name: old[0]?.release.name, isInForce: false, nodes: { length: 3 } },
    ]);

    await young.end();
    await pass(graceMs);
    expect(await inForce(name), "it may be back at once").toBe("young");
    await pass(1);
    expect(await inForce(name), "rolled back").toBe("old");
    expect((await stage.store.tasks.versions(name))[0]).toMatchObject({
      author: "leader",
      reason: `no process of release ${young.release.name} is left; ${old[0]?.release.name} is the newest of those that live`,
    });
    await young.start();
    expect(await inForce(name), "it was here before").toBe("old");
    await endAll(...old);
    await pass(2 * graceMs);
    expect(await inForce(name), "rolled out again").toBe("young");
    await endAll(young);
  });

  it("a release that restarts within the grace time keeps its definition; one away longer loses it, without alternating", async () => {
    const { name, of } = task();
    const old = await new Process("1.1", of("old")).start();
    const young = await new Process("1.2", of("young")).start();
    for (const awayMs of [1_000, 10_000, 40_000]) {
      await young.end();
      await pass(awayMs);
      await young.start();
      await pass(5_000);
    }
    expect([await inForce(name), await versions(name)]).toEqual(["young", 2]);
    for (let crash = 0; crash < 3; crash++) {
      await young.end();
      await pass(3 * graceMs);
      await young.start();
      await pass(5_000);
    }
    expect([await inForce(name), await versions(name)]).toEqual(["old", 3]);
    await endAll(old, young);
  });

  it("the same build restarted everywhere changes nothing, nor does a release with an equal definition", async () => {
    const { name, of } = task();
    const all = [1, 2, 3].map(() => new Process("1.1", of("same")));
    for (const process of all) await process.start();
    await endAll(...all);
    await pass(5 * graceMs);
    for (const process of all) await process.start();
    const next = await new Process("1.2", of("same"), task().of("another")).start();
    await endAll(...all);
    await pass(5 * graceMs);
    expect([await inForce(name), await versions(name)]).toEqual(["same", 1]);
    await endAll(next);
  });

  it("with numbered builds only the number decides: the greater one applies at once, even with earlier code", async () => {
    const { name, of } = task();
    const [one, two, three] = [new Process("41", of("a")), new Process("42", of("b")), new Process("43", of("a"))];
    await one.start();
    await two.start();
    await one.bring();
    expect(await inForce(name)).toBe("b");
    await three.start();
    expect(await inForce(name), "the new build takes it back").toBe("a");
    await two.bring();
    expect(await inForce(name)).toBe("a");
    await endAll(one, three);
    await pass(2 * graceMs);
    expect(await inForce(name), "rolled back to 42").toBe("b");
    await endAll(two);
  });

  it("goes by live processes, or, if none joins, by definitions saved within the grace time", async () => {
    const { name, of } = task();
    const [old, young] = [new Process("1.1", of("old")), new Process("1.2", of("young"))];
    await old.bring();
    await young.bring();
    await old.bring();
    expect(await inForce(name)).toBe("young");
    await pass(graceMs + 1);
    await old.bring();
    expect(await inForce(name)).toBe("old");
  });

  it("keeps manual edits and a pause", async () => {
    const { name, of } = task();
    const old = await new Process("1.1", of("old")).start();
    await stage.store.tasks.save(edited(of("old"), { priority: 7 }), null, { author: "me", reason: "", nowMs });
    await stage.store.tasks.pause(name, { author: "me", reason: "", nowMs });
    const young = await new Process("1.2", of("young")).start();
    await old.bring();
    const kept = async () => {
      const { definition, paused } = await stage.store.tasks.byName(name);
      return [definition.description, definition.priority, paused?.by];
    };
    expect(await kept()).toEqual(["young", 7, "me"]);
    await endAll(young);
    await pass(2 * graceMs);
    expect(await kept()).toEqual(["old", 7, "me"]);
    await endAll(old);
  });

  it("leaves tasks of a bundle and removed tasks unchanged", async () => {
    const [filed, removed] = [task(), task()];
    const old = await new Process("1.1", filed.of("old"), removed.of("old")).start();
    const young = await new Process("1.2", filed.of("young"), removed.of("young")).start();
    const change = { author: "me", reason: "", nowMs };
    await stage.store.tasks.save(filed.of("file"), null, { ...change, bundle: "files" });
    await stage.store.tasks.remove(removed.name, change);
    await endAll(young);
    await pass(2 * graceMs);
    expect(await inForce(filed.name)).toBe("file");
    await expect(stage.store.tasks.byName(removed.name)).rejects.toMatchObject({ code: "TASK_UNKNOWN" });
    await endAll(old);
  });

  it("older code without release information is replaced by any process", async () => {
    const { name, of } = task();
    const young = await new Process("1.2", of("young")).start();
    const older = of("older");
    await stage.sql.query(
      `update ${stage.schema}.task set version = version + 1, definition = $2, definition_text = $3 where name = $1`,
      [name, JSON.stringify(older), JSON.stringify(older)],
    );
    await stage.sql.query(
      `update ${stage.schema}.plan set version = 2 where task_id = (select id from ${stage.schema}.task where name = $1)`,
      [name],
    );
    expect((await stage.store.tasks.releasesOf(name)).map(({ isInForce }) => isInForce)).toEqual([false]);
    await young.bring();
    expect(await inForce(name)).toBe("young");
    await endAll(young);
  });

  it("of two processes that start at the same moment, the new code wins, in either order", async () => {
    const second = await stage.another();
    for (let round = 0; round < rounds(15, 300); round++) {
      const { name, of } = task();
      const [old, young] = [new Process("1.1", of("old")), new Process("1.2", of("young"))];
      await old.start();
      const bring = (store: typeof second, release: Release, definition: TaskDefinition) =>
        store.tasks.saveAll([definition], { author: "x", reason: "", nowMs }, { release, graceMs });
      const both = [
        () => bring(second, old.release, of("old")),
        () => bring(stage.store, young.release, of("young")),
        () => bring(second, old.release, of("old")),
      ];
      await Promise.all((round % 2 ? both : both.reverse()).map((begin) => begin()));
      expect([await inForce(name), await versions(name)], `round ${round}`).toEqual(["young", 2]);
      await endAll(old);
    }
  });

  it("deletes releases without live processes after a long time, and no other", async () => {
    const { name, of } = task();
    const old = await new Process("old", of("old")).start();
    await old.end();
    const young = await new Process("young", of("young")).start();
    await pass(3 * graceMs);
    await stage.store.tasks.forgetReleases(nowMs - 10 * graceMs);
    const labels = async () => (await stage.store.tasks.releasesOf(name)).map((release) => release.name.split("+")[0]);
    expect(await labels()).toEqual(["young", "old"]);
    await stage.store.tasks.forgetReleases(nowMs);
    expect(await labels()).toEqual(["young"]);
    await endAll(young);
  });

  /**
   * Plays random histories of five releases, two of which have equal definitions and two of which have numbers. Checks after each event
   * that a release which brings a stored definition again has not replaced the definition in force while a process with that definition was
   * alive, unless its number is higher. Once only processes of one release have been alive for the grace time, the definition must be that
   * of this release.
   */
  it("random roll-outs: a known release never replaces one with live processes, and the live one wins in the end", async () => {
    for (let round = 0; round < rounds(6, 200); round++) await playOne(seeded(seed + round), `round ${round}`);
  });

  async function playOne(random: Random, told: string): Promise<void> {
    const { name, of } = task();
    const pick = <T>(all: readonly T[]) => all[Math.floor(random.next() * all.length)] as T;
    const releases = [
      ["1.1", "a"],
      ["1.2", "b"],
      ["1.3", "a"],
      ["71", "c"],
      ["72", "d"],
    ] as const;
    const all = releases.flatMap(([label, text]) =>
      [1, 2].map(() => ({ text, process: new Process(label, of(text)) })),
    );
    const brought = new Set<string>();
    const first = pick(all);
    await first.process.start();
    brought.add(`${first.process.release.label} ${first.text}`);
    for (let event = 0; event < 25; event++) {
      const before = await inForce(name);
      const backed = all.filter(({ text, process }) => text === before && process.lives);
      const { text, process } = pick(all);
      const { label, number } = process.release;
      const what = random.next();
      if (process.lives) await process.end();
      else if (what < 0.8) {
        await process.start();
        const numbers = backed.map((one) => one.process.release.number ?? -1);
        if (brought.has(`${label} ${text}`) && backed.length > 0 && (number ?? -1) <= Math.max(...numbers))
          expect(await inForce(name), `${told}: known code has replaced what others stand behind`).toBe(before);
        brought.add(`${label} ${text}`);
      }
      await pass(pick([0, 0, 1_000, graceMs / 2, 2 * graceMs]));
      expect(
        releases.map(([, said]) => said),
        `${told}: it is somebody's`,
      ).toContain(await inForce(name));
    }
    for (const { process } of all) if (process.lives) await process.end();
    await pass(random.next() * 2 * graceMs);
    const last = pick(all);
    await last.process.start();
    await pass(2 * graceMs);
    expect(await inForce(name), `${told}: in the end`).toBe(last.text);
    expect((await stage.store.tasks.releasesOf(name)).filter(({ isInForce }) => isInForce).length).toBeGreaterThan(0);
    expect(codeOf((await stage.store.tasks.byName(name)).definition)).toBe(codeOf(of(last.text)));
    await last.process.end();
  }
});
