import { randomBytes } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Carillon } from "../../../scheduler/src/library/carillon.ts";
import type { TaskOptions } from "../../../scheduler/src/task/task.ts";
import { dropSchema } from "../../../scheduler/src/testing/schema.ts";
import { OwnProcess } from "../own-process.ts";
import type { Notice } from "./notices.ts";
import { Player } from "./player.ts";
import { groupCount, type Scenario } from "./scenario.ts";
import type { Pace, Seen } from "./seen.ts";
import { type Line, monotonicMs, taskName, type WorkerOptions } from "./worker-process.ts";
import type { World } from "./world.ts";

/** How long a handler without an end runs, in ms: longer than any task's timeout. */
const endlessMs = 20_000;
const settleMs = 300;
const lookMs = 100;

/** Plays a scenario in real time. The worker is a separate process, which is killed with SIGKILL where the scenario loses its worker. */
export async function playOnProcesses(url: string, scenario: Scenario, reactMs: number): Promise<Seen> {
  const world = new ProcessWorld(url, scenario.concurrency, reactMs);
  try {
    await world.open(scenario.tasks.length);
    const seen = await new Player(world, scenario, world.now()).play();
    return { ...seen, told: world.told };
  } finally {
    await world.close();
  }
}

/** Plays one scenario in real time, with its own database schema and one worker process at a time. */
class ProcessWorld implements World {
  readonly carillon: Carillon;
  readonly calendar = "calendar";
  readonly pace: Pace;
  readonly quietMs = 15 * 60_000;
  /** Warnings and errors that the scheduler logged. */
  readonly told: string[] = [];
  readonly #url: string;
  readonly #schema = `policies_${randomBytes(6).toString("hex")}`;
  readonly #folder = mkdtempSync(join(tmpdir(), "carillon-policies-"));
  readonly #concurrency: number;
  readonly #losses: Line[] = [];
  #workers = 0;
  #worker: OwnProcess | undefined;

  constructor(url: string, concurrency: number, reactMs: number) {
    this.pace = { slackMs: 100, reactMs };
    this.#url = url;
    this.#concurrency = concurrency;
    const tell = (fields: object, message: string) => void this.told.push(`${message} ${JSON.stringify(fields)}`);
    this.carillon = new Carillon({
      store: url,
      schema: this.#schema,
      name: "user",
      worker: false,
      handleSignals: false,
      drain: 0,
      log: { debug: () => undefined, info: () => undefined, warn: tell, error: tell },
    });
  }

  /** @param tasks number of the scenario's tasks; the scenario's first acts save their options */
  async open(tasks: number): Promise<void> {
    await this.carillon.start();
    await this.#startWorker(Array.from({ length: tasks }, () => ({})));
  }

  async close(): Promise<void> {
    await this.#worker?.kill();
    await this.carillon.stop();
    await dropSchema(this.#url, this.#schema);
    rmSync(this.#folder, { recursive: true });
  }

  taskName(task: number): string {
    return taskName(task);
  }

  groupName(group: number): string {
    return `g${group}`;
  }

  now(): number {
    return Date.now();
  }

  async advanceTo(ms: number): Promise<void> {
    await sleep(Math.max(0, ms - Date.now()));
  }

  async settle(): Promise<void> {
    await sleep(settleMs);
  }

  async lose(tasks: readonly TaskOptions[]): Promise<{ runIds: number[]; atMs: number }> {
    const { store } = await this.carillon.open();
    const name = this.#workerName;
    await this.#worker?.kill();
    const [atMs, mono] = [Date.now(), monotonicMs()];
    // During this wait, the server may still commit an outcome that the killed process had sent. After the wait no statement is open.
    await sleep(settleMs);
    const claimed = (await store.runs.list({ states: ["claimed"], limit: 1_000 })).filter(({ node }) => node === name);
    await this.#startWorker(tasks);
    // All claims count as lost, whether their runs have started or not: the runs fall due before the session times out, and a run
    // that is due may have started.
    const fences = claimed.flatMap(({ fence }) => (fence === null ? [] : [fence]));
    this.#losses.push({ kind: "lost", fences, atMs, killed: true, mono });
    const isHeld = async () =>
      (await store.runs.list({ states: ["claimed"], limit: 1_000 })).some(({ node }) => node === name);
    while (await isHeld()) await sleep(lookMs);
    return { runIds: claimed.map(({ runId }) => runId), atMs };
  }

  notices(): readonly Notice[] {
    const log = this.#log;
    const text = existsSync(log) ? readFileSync(log, "utf8") : "";
    const lines = text.split("\n").filter((line) => line !== "");
    return [...lines.map((line) => JSON.parse(line) as Line), ...this.#losses].sort((a, b) => a.mono - b.mono);
  }

  get #log(): string {
    return join(this.#folder, "notices");
  }

  get #workerName(): string {
    return `worker-${this.#workers}`;
  }

  async #startWorker(tasks: readonly TaskOptions[]): Promise<void> {
    this.#workers++;
    const options: WorkerOptions = {
      store: this.#url,
      schema: this.#schema,
      name: this.#workerName,
      concurrency: this.#concurrency,
      groups: ["default", ...Array.from({ length: groupCount }, (_, group) => this.groupName(group))],
      tasks,
      log: this.#log,
      endlessMs,
    };
    this.#worker = new OwnProcess(options.name, "--work", options);
    await this.#worker.ready;
  }
}
