import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { CarillonError } from "../../src/base/errors.ts";
import { type Random, seeded } from "../../src/base/random.ts";
import type { Membership } from "../../src/cluster/membership.ts";
import { joinCluster } from "../../src/coordination/membership.ts";
import { Reconciler } from "../../src/engine/reconciler.ts";
import { Definitions } from "../../src/store/definitions.ts";
import type { Store } from "../../src/store/store.ts";
import { StoreClock } from "../../src/store/store-clock.ts";
import type { TaskDefinition } from "../../src/task/task.ts";
import type { TaskRecord } from "../../src/task/task-record.ts";
import { Worker } from "../../src/worker/worker.ts";
import { CallMeter } from "../support/call-meter.ts";
import { type Losses, lossySignals } from "../support/lossy-signals.ts";
import { everyPostgres } from "../support/servers.ts";
import { change, openStage, recordingLog, type Stage, until } from "../support/store-stage.ts";
import { VirtualClock } from "../support/virtual-clock.ts";

const timeoutMs = 6_000;
const beatMs = 3_000;
/** Changes that arrive within this time in ms are read together. */
const gatherMs = 50;
/** The longest wait in ms between two reads. It applies if the virtual clock is advanced far during a read. */
const gatherMostMs = 2_000;
const seed = Number(process.env.CARILLON_TEST_SEED ?? Date.now() % 1_000_000);

const perfect: Losses = { lose: 0, double: 0, delayMs: 0 };
const deaf: Losses = { lose: 1, double: 0, delayMs: 0 };

describe.each(everyPostgres())(`propagation of configuration, on $title (seed ${seed})`, (server) => {
  let stage: Stage;
  const nodes: Node[] = [];
  beforeAll(async () => {
    stage = await openStage(server);
  });
  afterEach(async () => {
    for (const node of nodes.splice(0)) await node.stop();
  });
  afterAll(() => stage.close());

  /** One process: a clock, cached definitions, a worker, and signals over a simulated network. */
  class Node {
    readonly clock = new VirtualClock(stage.nowMs);
    readonly log = recordingLog();
    /** The definitions under which handlers ran. */
    readonly ran: { runId: number; by: TaskDefinition }[] = [];
    readonly definitions: Definitions;
    cut = false;
    beats = 0;
    looks = 0;
    news = 0;
    readonly #meter = new CallMeter();
    membership!: Membership;
    #reconciler!: Reconciler;
    #worker!: Worker;
    #heard: Promise<void> | undefined;
    readonly #stop = new AbortController();
    readonly #store: Store;

    constructor() {
      this.#store = this.#meter.over(stage.store);
      const { sessions, tasks } = this.#store;
      const reach = () => {
        if (this.cut) throw new CarillonError("STORE_UNREACHABLE", "cut");
      };
      this.#store = {
        ...this.#store,
        sessions: {
          ...sessions,
          beat: async (...given) => {
            this.beats++;
            reach();
            return sessions.beat(...given);
          },
        },
        tasks: {
          ...tasks,
          changedSince: async (sinceMs) => {
            this.looks++;
            reach();
            return tasks.changedSince(sinceMs);
          },
        },
      };
      this.definitions = new Definitions(this.#store.tasks);
    }

    /** @param canRun returns whether the worker of this process can run tasks with the given definition */
    async join(
      name: string,
      losses: Losses,
      random: Random,
      { groupIds = [] as number[], canRun = (_: TaskDefinition): boolean => true } = {},
    ): Promise<this> {
      nodes.push(this);
      const { clock, definitions } = this;
      const { log } = this.log;
      const storeClock = new StoreClock(clock);
      const identity = { node: name, role: "worker" as const, host: "here", pid: 1, version: "0", timeoutMs };
      const membership = await joinCluster({ store: this.#store, clock, storeClock, identity, beatMs, log });
      this.membership = membership;
      const shared = { membership, definitions, clock, storeClock, log };
      this.#worker = new Worker({
        ...shared,
        claims: this.#store.claims,
        groupIds,
        random,
        concurrency: 10,
        claimAheadMs: 1_000,
        writeLogs: async () => undefined,
        handlerOf: (definition) =>
          canRun(definition) ? (run) => void this.ran.push({ runId: run.id, by: definition }) : undefined,
      });
      this.#reconciler = new Reconciler({
        ...shared,
        store: this.#store,
        onChanged: () => {
          this.news++;
          this.#worker.onSignal({ kind: "tasks" });
        },
      });
      let connected = false;
      const signals = lossySignals(stage.store.signals, clock, random, losses);
      this.#heard = signals.listen((signal) => this.#reconciler.onSignal(signal), this.#stop.signal);
      const probe = stage.store.signals.listen(() => {
        connected = true;
      }, this.#stop.signal);
      this.#heard = Promise.all([this.#heard, probe]).then(() => undefined);
      await until("the listener to listen", () => connected);
      await this.quiet();
      return this;
    }

    version(task: TaskRecord): number | undefined {
      return this.definitions.get(task.taskId)?.version;
    }

    /** Advances this node's clock, and waits until all operations that this started have settled. */
    async pass(ms: number): Promise<void> {
      this.clock.advance(ms);
      await this.quiet();
    }

    async quiet(): Promise<void> {
      await this.#meter.rest();
    }

    async stop(): Promise<void> {
      this.cut = false;
      this.#stop.abort();
      const stopped = Promise.all([this.#reconciler.stop(), this.#worker.stop(0, 250), this.membership.leave("over")]);
      let done = false;
      void stopped.finally(() => {
        done = true;
      });
      await until("the node to stop", () => {
        this.clock.advance(1_000);
        return done;
      });
      await this.#heard;
    }
  }

  const save = (task: TaskRecord, description: string, expected: number | null, author = "test") =>
    stage.store.tasks.save({ ...task.definition, description }, expected, { ...change(stage.nowMs), author });
  let groups = 0;
  const made = (name: string) => stage.task(name, { group: `travel-${++groups}`, description: "first" });
  const everyone = (ms: number) => Promise.all(nodes.map((node) => node.pass(ms)));

  it("a signal updates every node's cache at once", async () => {
    const task = await made("heard");
    const random = seeded(seed);
    for (const name of ["a", "b", "c"]) {
      const node = await new Node().join(name, perfect, random);
      await node.definitions.ensure([task]);
    }
    await save(task, "second", 1);
    await until("every node to know", async () => {
      await everyone(1);
      return nodes.every((node) => node.version(task) === 2);
    });
    for (const node of nodes) expect(node.clock.monotonic(), "before any beat").toBeLessThan(1_000 + beatMs);
  });

  it("without signals the next heartbeat brings the change, and a node without changes sends no query", async () => {
    const task = await made("unheard");
    const unknown = await made("never-wanted");
    const random = seeded(seed);
    for (const name of ["a", "b"]) {
      const node = await new Node().join(name, deaf, random);
      await node.definitions.ensure([task]);
    }
    for (let i = 0; i < 3; i++) await everyone(beatMs);
    const before = nodes.map(({ looks, beats }) => ({ looks, beats }));
    for (let i = 0; i < 10; i++) await everyone(beatMs);
    nodes.forEach(({ looks, beats }, i) => {
      expect(beats).toBeGreaterThanOrEqual((before[i]?.beats ?? 0) + 10);
      expect(looks, "nothing changed, nothing asked").toBe(before[i]?.looks);
    });
    await save(task, "second", 1);
    await save(unknown, "second", 1);
    for (const node of nodes) expect(node.version(task)).toBe(1);
    await everyone(beatMs);
    await everyone(gatherMs);
    for (const node of nodes) {
      expect(node.version(task)).toBe(2);
      expect(node.definitions.get(unknown.taskId), "what it never wanted is read when first wanted").toBeUndefined();
    }
  });

  it("a change stamped before others but committed after them is found, even by a node without signals", async () => {
    const early = await made("stamped-early");
    const late = await made("stamped-late");
    const node = await new Node().join("a", deaf, seeded(seed));
    await node.definitions.ensure([early, late]);
    await stage.store.tasks.save({ ...late.definition, description: "x" }, 1, change(stage.nowMs + 60_000));
    await node.pass(beatMs);
    await node.pass(gatherMs);
    expect(node.version(late)).toBe(2);
    await stage.store.tasks.save({ ...early.definition, description: "x" }, 1, change(stage.nowMs - 60_000));
    await node.pass(beatMs);
    await node.pass(gatherMs);
    expect(node.version(early)).toBe(2);
  });

  it("a node cut off for an hour receives all changes at its first heartbeat", async () => {
    const task = await made("long-ago");
    const node = await new Node().join("a", deaf, seeded(seed));
    await node.definitions.ensure([task]);
    await node.pass(beatMs);
    node.cut = true;
    await save(task, "second", 1);
    for (let i = 0; i < 60; i++) node.clock.advance(60_000);
    await node.quiet();
    expect(node.version(task)).toBe(1);
    // These later changes concern other tasks, so reading only the last few minutes of changes would miss the first task's.
    for (let i = 0; i < 3; i++) await stage.task(`later-${i}`, {}, stage.nowMs + 3_600_000);
    node.cut = false;
    await until("it to catch up", async () => {
      await node.pass(300);
      return node.version(task) === 2;
    });
  });

  it("with lost, repeated, late and reordered signals and concurrent edits, all nodes converge within a heartbeat", async () => {
    const random = seeded(seed);
    const tasks = await Promise.all([0, 1, 2, 3].map((i) => made(`storm-${i}`)));
    for (const name of ["a", "b", "c", "d"]) {
      const node = await new Node().join(name, { lose: 0.4, double: 0.4, delayMs: 2 * beatMs }, random);
      await node.definitions.ensure(tasks);
    }
    const highest = new Map(nodes.map((node) => [node, new Map<number, number>()]));
    const check = async () => {
      const stored = new Map(
        (await stage.store.tasks.byIds(tasks.map(({ taskId }) => taskId))).map((t) => [t.taskId, t]),
      );
      for (const node of nodes) {
        for (const { taskId } of tasks) {
          const known = node.definitions.get(taskId);
          const last = highest.get(node)?.get(taskId) ?? 0;
          expect(known?.version, "a memory never goes back").toBeGreaterThanOrEqual(last);
          expect(known?.version).toBeLessThanOrEqual(stored.get(taskId)?.version ?? 0);
          expect(known?.definition.description).toBe(known?.version === 1 ? "first" : `version ${known?.version}`);
          highest.get(node)?.set(taskId, known?.version ?? 0);
        }
      }
    };
    let refused = 0;
    let saved = 0;
    for (let round = 0; round < 12; round++) {
      const edits = Array.from({ length: 1 + Math.floor(random.next() * 4) }, async () => {
        const task = tasks[Math.floor(random.next() * tasks.length)] as TaskRecord;
        const from = (await stage.store.tasks.byName(task.name)).version;
        const author = `editor-${Math.floor(random.next() * 9)}`;
        return save(task, `version ${from + 1}`, from, author).then(
          () => saved++,
          (error: CarillonError) => {
            expect(error.code).toBe("TASK_STALE");
            expect(error.message).toMatch(new RegExp(`from version ${from};`));
            refused++;
          },
        );
      });
      await Promise.all(edits);
      for (const node of nodes) if (random.next() < 0.6) node.clock.advance(random.next() * beatMs);
      await check();
    }
    expect(saved).toBeGreaterThan(0);
    const versions = await stage.store.tasks.byIds(tasks.map(({ taskId }) => taskId));
    expect(saved, "each accepted edit is one version").toBe(
      versions.reduce((sum, { version }) => sum + version - 1, 0),
    );
    expect(saved + refused).toBeGreaterThanOrEqual(12);
    // The heartbeat under way may have been sent before the last edits; only the heartbeat after it reports them.
    await everyone(0);
    await everyone(beatMs);
    await everyone(gatherMostMs);
    await check();
    for (const node of nodes)
      for (const task of await stage.store.tasks.byIds(tasks.map(({ taskId }) => taskId)))
        expect(node.version(task), `${node.membership.node} knows ${task.name} (seed ${seed})`).toBe(task.version);
  });

  describe("a worker that receives no signal", () => {
    it("runs a run enqueued before an edit by the edited definition, however old its cache is", async () => {
      const task = await made("enqueued-before");
      const node = await new Node().join("w", deaf, seeded(seed), { groupIds: [task.groupId] });
      await node.definitions.ensure([task]);
      const runId = await stage.enqueue(task, { dueMs: stage.nowMs + 500 });
      await save(task, "second", 1);
      expect(node.version(task), "its memory is old").toBe(1);
      await until("it to run", async () => {
        await node.pass(1_000);
        return node.ran.length > 0;
      });
      expect(node.ran).toMatchObject([{ runId, by: { description: "second" } }]);
      await until("its end", async () => (await stage.store.runs.find(runId)).state === "succeeded");
      expect(await stage.store.runs.find(runId)).toMatchObject({ version: 2 });
    });

    it("starts claiming, at its next heartbeat, a task that it could not run before", async () => {
      const task = await made("could-not");
      const canRun = ({ description }: TaskDefinition) => description === "second";
      const node = await new Node().join("w", deaf, seeded(seed), { groupIds: [task.groupId], canRun });
      const runId = await stage.enqueue(task);
      await until("it to be given back", async () => {
        await node.pass(1_000);
        return (
          (await stage.store.runs.find(runId)).state === "ready" && node.definitions.get(task.taskId) !== undefined
        );
      });
      await node.pass(beatMs);
      await node.pass(gatherMs);
      expect(node.ran).toEqual([]);
      await save(task, "second", 1);
      await node.pass(beatMs);
      await node.pass(gatherMs);
      await until("it to run", async () => {
        await node.pass(1);
        return node.ran.length > 0;
      });
      expect(node.ran).toMatchObject([{ runId }]);
    });
  });
});
