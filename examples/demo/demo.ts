/**
 * Runs the demo: starts two nodes on a fresh embedded store, enqueues runs, kills the leader with -9 half-way, and prints a verdict at the
 * end. This process itself neither schedules nor executes runs.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type Carillon, carillon, type Store } from "carillon";
import { type Evidence, judge, type Kill, type Request } from "./check.ts";
import { Interrupted, type Interruption } from "./interruption.ts";
import { type Options, Trouble } from "./options.ts";
import { Processes } from "./processes.ts";
import { RecordReader, type Seen } from "./record.ts";
import { runsOf, type Screen } from "./screen.ts";
import { type Stage, setStage } from "./stage.ts";
import { type Facts, type Figures, figuresOf, passed, summary } from "./summary.ts";
import { type DebianTasks, debianTasks, reminder, scheduledTasks } from "./tasks.ts";
import { View } from "./view.ts";

const names = ["bourdon", "treble"];
const delayedRuns = 1_000;
/** Without --seconds the enqueued runs are spread over this many seconds, and the kill happens half-way. */
const openEndedSeconds = 30;
/**
 * The time in ms in which everything must be enqueued before the first run is due. If it is not enough, the demo tries again with four
 * times the time, up to `last`; then it gives up, because the machine is too busy.
 */
const preparationMs = { first: 3_000, last: 48_000 };
/** The longest wait in ms for due runs to end. With default settings, the runs of a dead node start again after some 10 s. */
const aftermathMs = 60_000;
const aftermathInterruptedMs = 20_000;
const killPatienceMs = 2_000;
const lookMs = 50;
const watchMs = 250;
/** A statement that the server is executing normally ends within this many ms. The wait is repeated while the result still changes. */
const settlesMs = 250;
const electionMs = 20_000;

export interface Result {
  figures: Figures;
  passed: boolean;
}

/** @throws Interrupted if interrupted before the counted time; Trouble for a failure that the user can correct; CarillonError */
export async function runDemo(options: Options, screen: Screen, interruption: Interruption): Promise<Result> {
  const stage = await setStage(options.directory);
  const say = (_: object, message: string) => screen.line(`demo: ${message}`, "dim");
  const quiet = () => undefined;
  const tower = carillon({
    store: "embedded",
    directory: stage.directory,
    scheduler: false,
    worker: false,
    handleSignals: false,
    log: { debug: quiet, info: quiet, warn: say, error: say },
  });
  const processes = new Processes((trouble) => interruption.come(trouble));
  const demo = new Demo({ options, screen, interruption, stage, tower, processes });
  try {
    return await demo.run();
  } finally {
    // This process is the last user of the embedded store, so its `stop` stops the server and the folder can be removed, even if a node did
    // not end properly.
    try {
      await processes.stopAll();
    } finally {
      await tower.stop();
      demo.reader.close();
      await stage.clear();
    }
  }
}

interface DemoParts {
  readonly options: Options;
  readonly screen: Screen;
  readonly interruption: Interruption;
  readonly stage: Stage;
  readonly tower: Carillon;
  readonly processes: Processes;
}

class Demo {
  readonly reader: RecordReader;
  readonly #options: Options;
  readonly #screen: Screen;
  readonly #interruption: Interruption;
  readonly #stage: Stage;
  readonly #tower: Carillon;
  readonly #processes: Processes;
  readonly #debian: DebianTasks = debianTasks();
  readonly #view: View;
  readonly #seen: Seen[] = [];
  #requests: Request[] = [];
  #leader = "";
  #kill: Kill | undefined;
  #killedTerm = 0;
  #takeoverMs: number | null = null;
  #secondMs = 0;

  constructor({ options, screen, interruption, stage, tower, processes }: DemoParts) {
    this.#options = options;
    this.#screen = screen;
    this.#interruption = interruption;
    this.#stage = stage;
    this.#tower = tower;
    this.#processes = processes;
    this.#view = new View(screen, this.#debian);
    this.reader = new RecordReader(stage.record);
  }

  async run(): Promise<Result> {
    const { directory, record } = this.#stage;
    const interruption = this.#interruption;
    this.#screen.line("Starting an embedded PostgreSQL and two processes …", "dim");
    const { store, embedded } = await interruption.or(this.#tower.open());
    const postgres = embedded?.version ?? "";
    await interruption.or(Promise.all(names.map((name) => this.#processes.start({ name, directory, record }))));
    this.#leader = await interruption.or(this.#elected(store));
    this.#view.header({ nodes: names, leader: this.#leader, postgres, directory, node: process.version });

    const { seconds } = this.#options;
    const fromMs = await interruption.or(this.#prepare(seconds ?? openEndedSeconds));
    this.#view.enqueued(this.#requests);

    const toMs = await this.#watch(store, fromMs, seconds);
    await this.#processes.stopAll();
    this.#read();
    if (interruption.trouble) throw interruption.trouble;
    if (toMs <= fromMs) throw new Interrupted("interrupted");
    const evidence: Evidence = {
      fromMs,
      toMs,
      scheduled: scheduledTasks(this.#debian),
      requests: this.#requests,
      seen: this.#seen,
      kill: this.#kill,
      interrupted: interruption.happened,
    };
    const verdict = await judge(evidence, store);
    const facts: Facts = {
      seconds: (toMs - fromMs) / 1_000,
      nodes: names.length,
      postgres,
      kill: this.#kill,
      takeoverMs: this.#takeoverMs,
    };
    summary(this.#screen, verdict, facts, this.#debian, Date.now());
    return { figures: figuresOf(verdict, facts), passed: passed(verdict) };
  }

  async #elected(store: Store): Promise<string> {
    for (let waitedMs = 0; waitedMs < electionMs; waitedMs += lookMs) {
      const { members, leadership } = await store.sessions.members();
      const leader = members.find(({ sessionId }) => sessionId === leadership.sessionId)?.node;
      if (leader !== undefined) return leader;
      await sleep(lookMs);
    }
    throw new Trouble(`Nobody was elected leader within ${electionMs / 1_000} s.`);
  }

  /** Enqueues all runs before the first is due. @returns the start of the counted time, epoch ms */
  async #prepare(seconds: number): Promise<number> {
    for (let givenMs = preparationMs.first; givenMs <= preparationMs.last; givenMs *= 4) {
      const fromMs = Math.ceil((Date.now() + givenMs) / 1_000) * 1_000;
      this.#requests = await this.#enqueue(fromMs, seconds);
      if (Date.now() <= fromMs) return fromMs;
      // Runs that have already run cannot be cancelled; they are not counted.
      await Promise.allSettled(this.#requests.map(({ run }) => this.#tower.cancel(run)));
    }
    throw new Trouble(`Enqueueing took this machine more than ${preparationMs.last} ms: it is too busy to measure on.`);
  }

  /** Enqueues 1,000 delayed runs, evenly spread, and one run of each crontab task, because few of these come due during the demo. */
  async #enqueue(fromMs: number, seconds: number): Promise<Request[]> {
    const spread = (kind: Request["kind"], tasks: string[]) =>
      tasks.map((task, i) => ({
        kind,
        task,
        dueMs: fromMs + Math.floor(((i + 0.5) * seconds * 1_000) / tasks.length),
      }));
    const wanted = [
      ...spread(
        "delayed",
        Array.from({ length: delayedRuns }, () => reminder.name),
      ),
      ...spread(
        "by hand",
        this.#debian.tasks.map(({ name }) => name),
      ),
    ];
    const handles = await Promise.all(
      wanted.map(({ task, dueMs }) => this.#tower.enqueue(task, undefined, { at: dueMs })),
    );
    return wanted.map((request, i) => ({ ...request, run: handles[i]?.runId as number }));
  }

  /**
   * Shows events, kills the leader half-way, and waits until all due runs have ended or a time limit has passed.
   * @returns the end of the counted time, epoch ms
   */
  async #watch(store: Store, fromMs: number, seconds: number | null): Promise<number> {
    const killMs = fromMs + Math.floor((seconds ?? openEndedSeconds) / 2) * 1_000 + 100;
    let toMs = seconds === null ? Number.POSITIVE_INFINITY : fromMs + seconds * 1_000;
    let watchedMs = 0;
    let counting = false;
    let over = false;
    for (;;) {
      const nowMs = Date.now();
      if (!counting && nowMs >= fromMs) {
        counting = true;
        this.#view.counting(fromMs, seconds);
      }
      this.#read();
      if (this.#interruption.happened) toMs = Math.min(toMs, nowMs);
      else if (this.#kill === undefined && nowMs >= killMs) {
        // Wait up to 2 s for a moment at which the leader has runs in progress, so that the kill interrupts some.
        if (this.#underWay(this.#leader).size > 0 || nowMs > killMs + killPatienceMs) await this.#killLeader(store);
      }
      if (nowMs - watchedMs >= watchMs) {
        watchedMs = nowMs;
        await this.#watchCluster(store);
        if (nowMs >= toMs) {
          const left = await this.#unfinished(store, fromMs, toMs);
          const limitMs = this.#interruption.happened ? aftermathInterruptedMs : aftermathMs;
          if (left.length === 0 || toMs <= fromMs || this.#interruption.trouble || nowMs - toMs > limitMs) return toMs;
          if (this.#interruption.happened && left.every(({ node }) => node !== null && node === this.#kill?.node))
            return toMs;
          if (!over) this.#view.loud(nowMs, `the time is over; ${runsOf(left.length)} still to end`, "bold");
          over = true;
        }
      }
      await sleep(lookMs);
    }
  }

  /** Returns the runs due in the counted time that have not ended, according to the store. */
  async #unfinished(store: Store, fromMs: number, toMs: number) {
    const states = ["held", "paused", "ready", "claimed"] as const;
    const dueMs = new Map(this.#requests.map((request) => [request.run, request.dueMs]));
    const live = await store.runs.list({ states: [...states], sinceMs: fromMs, limit: 100_000 });
    return live.filter(({ slotMs, runId }) => {
      // The nominal time is compared, because a retry has a later due time.
      const nominalMs = slotMs ?? dueMs.get(runId) ?? Number.POSITIVE_INFINITY;
      return nominalMs >= fromMs && nominalMs < toMs;
    });
  }

  #read(): void {
    const nowMs = Date.now();
    for (const record of this.reader.read()) {
      if (record.kind !== "said") this.#seen.push(record);
      this.#view.show(record);
    }
    this.#view.read(nowMs);
    if (nowMs - this.#secondMs < 1_000) return;
    this.#secondMs = Math.floor(nowMs / 1_000) * 1_000;
    this.#view.second(nowMs);
  }

  async #killLeader(store: Store): Promise<void> {
    const node = this.#leader;
    const pid = this.#processes.pid(node) ?? 0;
    this.#killedTerm = (await store.sessions.members()).leadership.term;
    const atMs = Date.now();
    await this.#processes.kill(node);
    this.#read();
    const claimedNow = async () =>
      (await store.runs.list({ states: ["claimed"], limit: 100_000 })).filter((run) => run.node === node);
    // The server may still execute a statement of the dead process, so repeat the query until its result stays the same.
    let claimed = await claimedNow();
    for (let before = -1; before !== claimed.length; ) {
      before = claimed.length;
      await sleep(settlesMs);
      claimed = await claimedNow();
    }
    const underWay = this.#underWay(node).size;
    this.#kill = { node, atMs, claimed: claimed.length, underWay };
    this.#view.killed(node, pid, atMs, claimed.length, underWay);
  }

  /** Returns the ids of runs with a recorded start on this node and without a recorded end. */
  #underWay(node: string): Set<number> {
    const runs = new Set<number>();
    for (const seen of this.#seen) {
      if (seen.node !== node) continue;
      if (seen.kind === "start") runs.add(seen.run);
      else runs.delete(seen.run);
    }
    return runs;
  }

  async #watchCluster(store: Store): Promise<void> {
    if (!this.#kill || this.#takeoverMs !== null) return;
    const { members, leadership } = await store.sessions.members();
    const leader = members.find(({ sessionId }) => sessionId === leadership.sessionId)?.node;
    if (leadership.term <= this.#killedTerm || leader === undefined) return;
    const nowMs = Date.now();
    this.#takeoverMs = nowMs - this.#kill.atMs;
    const seconds = (this.#takeoverMs / 1_000).toFixed(1);
    this.#view.loud(nowMs, `→ ${leader} leads, term ${leadership.term}, ${seconds} s after the kill`, "green");
  }
}
