import type { SecretSource } from "../../access/secrets/secrets.ts";
import type { ClaimStanding, WorkerKey } from "../../access/worker-store.ts";
import type {
  GivenLog,
  GivenVerdict,
  JoinRequest,
  PollAnswer,
  PollRequest,
  Refusal,
} from "../../api/worker-protocol.ts";
import type { Clock } from "../../base/clock.ts";
import { CarillonError, messageOf } from "../../base/errors.ts";
import { limits } from "../../base/limits.ts";
import type { Log } from "../../base/log.ts";
import type { Random } from "../../base/random.ts";
import type { Signal } from "../../cluster/signal-store.ts";
import type { ClaimedRun, Settlement } from "../../run/claim-store.ts";
import type { LogLine } from "../../run/run-record.ts";
import type { Definitions } from "../../store/definitions.ts";
import type { Store } from "../../store/store.ts";
import type { StoreClock } from "../../store/store-clock.ts";
import { type RunTrace, storeTraces, type TraceSource } from "../../store/trace-context.ts";
import { checkName } from "../../task/names.ts";
import { claimText, isForeign, isHeld, kept, refusal, type Spoken, Standings, stale } from "../refusals.ts";
import { FlowCalls, type Refuse } from "./flow-calls.ts";
import { Lanes } from "./lanes.ts";
import { type Attached, type Holding, Sessions, sessionOver } from "./sessions.ts";
import { Settling } from "./settling.ts";
import { isRepeated, settlementOf, verdictOf } from "./verdicts.ts";
import { WaitingPoll } from "./waiting-poll.ts";

export interface PollerOptions {
  store: Store;
  secretSource: SecretSource;
  definitions: Definitions;
  clock: Clock;
  storeClock: StoreClock;
  random: Random;
  log: Log;
}

const defaultTimeoutMs = 6_000;
/** What a session holds must not wait longer for its worker's next sign of life than this part of its timeout. */
const waitsPerTimeout = 3;

/** Answers polls: each says what its worker has to tell, in one go, and waits for what there is to answer. */
export class Poller {
  readonly #options: PollerOptions;
  readonly #sessions: Sessions;
  readonly #settling: Settling;
  readonly #lanes: Lanes;
  readonly #flow: FlowCalls;
  readonly #traces: TraceSource;
  #closed = false;

  constructor(options: PollerOptions) {
    this.#options = options;
    this.#traces = storeTraces(options.store.runs, options.storeClock);
    const now = () => options.storeClock.now();
    this.#sessions = new Sessions({
      ...options,
      onDirected: (session, dueMs) => this.#lanes.onDirected(session, dueMs),
    });
    this.#settling = new Settling(options.store.claims, now, options.log);
    this.#lanes = new Lanes({ ...options, release: (session, runs) => this.#release(session, runs) });
    this.#flow = new FlowCalls(options.store, options.storeClock, options.secretSource);
  }

  onSignal(signal: Signal): void {
    if (signal.kind === "ready") this.#lanes.onReady(signal.dueMs);
    if (signal.kind === "directed") this.#sessions.directed(signal.sessionId, signal.dueMs);
    if (signal.kind === "tasks" || signal.kind === "resync") this.#lanes.onChanged();
    if (signal.kind === "recall" || signal.kind === "resync") {
      this.#sessions.lookForRecalls().catch((error) =>
        // Each beat looks again.
        this.#options.log.debug({ error: messageOf(error) }, "recalls of remote workers could not be read yet"),
      );
    }
  }

  /** What waits is answered; nothing more is claimed. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#sessions.close();
    await this.#lanes.close();
    await this.#settling.close();
  }

  /**
   * @param traces whether the worker wants to know from where its runs come
   * @param gone aborts when nobody is there any more to be answered
   * @throws SESSION_LOST, KEY_FORBIDDEN, NODE_NAME_TAKEN, TASK_INVALID, STOPPED, STORE_…
   */
  async poll(key: WorkerKey, request: PollRequest, gone: AbortSignal, traces = false): Promise<PollAnswer> {
    const { clock, storeClock } = this.#options;
    const beganMono = clock.monotonic();
    if (this.#closed) throw new CarillonError("STOPPED", "this server is stopping", { hint: "Go to another one." });
    const session = request.join
      ? await this.#join(key, request.join)
      : await this.#sessions.get(request.session as number, key.keyId);
    if (request.draining) await this.#options.store.routes.drain(session.id);
    if (request.waitMs !== undefined) session.waiting?.end();
    const refused: Refusal[] = [];
    const heard = await this.#listen(key, session, request, refused);
    const found = await this.#compare(session, request.holds);
    let runs = found.runs;
    let turnedTo: number | undefined;
    if (request.leave) await this.#leave(session);
    else if (request.turn) {
      const turn = await this.#lanes.turn(session, request.want ?? limits.runsPerPoll, request.turn);
      runs = runs.concat(turn.runs);
      turnedTo = turn.lastTaskId;
    } else if (!request.join) {
      // What is given again is among those that it has places for.
      const left = () => Math.max(0, (request.want ?? 0) - runs.length);
      runs.push(...(await this.#ungiven(session, left())));
      const answerNow = runs.length + refused.length + found.lost.length > 0 || Object.keys(heard).length > 0;
      runs = runs.concat(await this.#runsFor(session, { ...request, want: left() }, gone, answerNow));
    }
    if (session.row.ended && !request.leave) throw sessionOver(session.id);
    // Nobody is there to have them; whoever asks next is.
    if (gone.aborted) session.ungiven.push(...runs);
    // A trace is not worth a run: with the store away there is none.
    const origins = traces && runs.length > 0 ? await this.#traces.tracesOf(runs).catch(() => undefined) : undefined;
    const nowMs = storeClock.now();
    for (const { fence } of session.recalls) session.told.add(fence);
    return {
      session: session.id,
      nowMs,
      tookMs: clock.monotonic() - beganMono,
      sureForMs: request.leave ? 0 : session.sureUntilMs - nowMs,
      runs: runs.map((run) => ({ ...this.#given(run, nowMs), ...traced(origins?.get(run.runId)) })),
      tasks: this.#facts(runs),
      recalls: session.recalls.flatMap(({ runId, fence, kind, why }) =>
        session.held.has(fence) ? [{ runId, fence, kind, why }] : [],
      ),
      ...(turnedTo === undefined ? {} : { turnedTo }),
      ...heard,
      refused,
      lost: found.lost,
    };
  }

  async #runsFor(
    session: Attached,
    request: PollRequest,
    gone: AbortSignal,
    answerNow: boolean,
  ): Promise<ClaimedRun[]> {
    const { want = 0, waitMs = 0, aheadMs = 0 } = request;
    const runs = want > 0 ? await this.#lanes.claim(session, want, aheadMs) : [];
    const recalled = session.recalls.some(({ fence }) => !session.told.has(fence));
    if (runs.length > 0 || answerNow || recalled || waitMs === 0 || gone.aborted || this.#closed) return runs;
    const sureMs = session.held.size > 0 ? session.row.timeoutMs / waitsPerTimeout : waitMs;
    // Two polls of one session may have come here at once.
    session.waiting?.end();
    const poll = new WaitingPoll({ want, aheadMs, waitMs: Math.min(waitMs, sureMs) }, this.#options.clock, gone);
    session.waiting = poll;
    poll.onEnd(() => {
      if (session.waiting === poll) session.waiting = undefined;
      session.heardMono = this.#options.clock.monotonic();
    });
    if (want > 0 && !poll.over) this.#lanes.wait(session, poll);
    const given = await poll.ended;
    return given.concat(await this.#ungiven(session, want - given.length));
  }

  /**
   * What no answer carried, and is still its claim: its worker may have learned of it by another server's copy of the book,
   * and be through with it. What it ends while this is asked it leaves out of the answer itself.
   */
  async #ungiven(session: Attached, most: number): Promise<ClaimedRun[]> {
    const runs = session.ungiven.splice(0, Math.max(0, most));
    if (runs.length === 0) return runs;
    try {
      const standings = await this.#look(session, runs);
      const over = runs.filter((run) => standings.of(run)?.standing !== "held");
      for (const { fence } of over) session.drop(fence);
      return runs.filter((run) => !over.includes(run));
    } catch (error) {
      session.ungiven.push(...runs);
      throw error;
    }
  }

  // ---- sessions

  async #join(key: WorkerKey, join: JoinRequest): Promise<Attached> {
    const { store, storeClock } = this.#options;
    checkName("a worker's name", join.name, 100);
    const groups = join.groups ?? key.groups;
    const foreign = groups.find((group) => !key.groups.includes(group));
    if (foreign !== undefined) {
      throw new CarillonError("KEY_FORBIDDEN", `the key ${key.name} does not allow group ${JSON.stringify(foreign)}`, {
        hint: `It allows ${key.groups.join(", ")}.`,
      });
    }
    const { name: node, host = "", pid = 0, version = "", labels = {}, concurrency = null, former } = join;
    const timeoutMs = join.timeoutMs ?? defaultTimeoutMs;
    const followed = former === undefined ? undefined : await this.#followed(key, node, former, join.instance ?? "");
    const identity = {
      node,
      role: "worker" as const,
      host,
      pid,
      version,
      timeoutMs,
      groups,
      labels,
      capacity: concurrency,
    };
    const owner = { keyId: key.keyId, instance: join.instance ?? "", tasks: join.tasks ?? null };
    const opened = await store.workers.open(identity, owner, storeClock.now());
    if ("takenBy" in opened) {
      throw new CarillonError("NODE_NAME_TAKEN", `the name ${node} is used by a worker on ${opened.takenBy}`, {
        hint: "If that was this worker before, its session ends within its timeout. Else give this one another name.",
      });
    }
    if ("full" in opened) {
      throw new CarillonError("KEY_SESSIONS", `the key ${key.name} has ${opened.full} sessions`, {
        hint: "Stop workers that are not needed, or make another key: carillon keys create NAME.",
      });
    }
    if (followed !== undefined && followed !== opened.sessionId) await store.claims.adopt(followed, opened.sessionId);
    return this.#sessions.get(opened.sessionId, key.keyId);
  }

  /**
   * Only what ended can be followed, and only by whoever had it. @returns the session whose claims move, if there is one: of
   * one that no key opened, be it forgotten or a process's that has the store itself, nothing is moved
   */
  async #followed(key: WorkerKey, node: string, former: number, instance: string): Promise<number | undefined> {
    const { store, storeClock } = this.#options;
    const row = await store.workers.attach(former, key.keyId, storeClock.now());
    if (!row) return undefined;
    if (row.keyId !== key.keyId || row.node !== node)
      throw new CarillonError("KEY_FORBIDDEN", `session ${former} was another worker's`);
    if (!row.ended && instance === "")
      throw new CarillonError("NODE_NAME_TAKEN", `session ${former} has not ended`, { hint: "Poll with it." });
    return former;
  }

  async #leave(session: Attached): Promise<void> {
    const { store, storeClock } = this.#options;
    session.row.ended = true;
    this.#sessions.forget(session);
    if (session.ungiven.length > 0) this.#release(session, session.ungiven.splice(0));
    await this.#settling.close();
    await store.routes.drain(session.id);
    await store.sessions.end(session.id, null, storeClock.now(), "left");
  }

  /** The fences that the worker named beside the book. */
  async #compare(session: Attached, holds: number[] | undefined): Promise<{ runs: ClaimedRun[]; lost: number[] }> {
    if (!holds) return { runs: [], lost: [] };
    const book = await this.#sessions.readBook(session);
    await this.#options.definitions.ensure(book);
    session.learn(book, this.#options.storeClock.now());
    session.ungiven = [];
    const [held, onBook] = [new Set(holds), new Set(book.map(({ fence }) => fence))];
    // One whose verdict is on its way, or has just been taken, may be on the copy that was read.
    const stands = (fence: number) => session.held.has(fence);
    return {
      runs: book.filter(({ fence }) => !held.has(fence) && stands(fence)),
      lost: holds.filter(
        (fence) => !onBook.has(fence) && !session.settled.has(fence) && !session.settledBefore.has(fence),
      ),
    };
  }

  // ---- what the worker tells

  async #listen(
    key: WorkerKey,
    session: Attached,
    request: PollRequest,
    refused: Refusal[],
  ): Promise<Pick<PollAnswer, "spawned" | "inputs" | "secret">> {
    const {
      verdicts = [],
      reports = [],
      logs = [],
      states = [],
      spawns = [],
      inputsOf,
      secretOf,
      spans = [],
    } = request;
    const [asked, wished] = [inputsOf ? [inputsOf] : [], secretOf ? [secretOf] : []];
    const flows = [...states, ...spawns, ...asked, ...wished, ...spans];
    const told = [...reports, ...logs, ...flows];
    if (verdicts.length + told.length === 0) return {};
    // A verdict on what is not held may be an old one said again. So may be one on what another server may have heard of
    // before: of a success the store's own answer tells. A log line may come a little after its run's end.
    const standings = await this.#look(session, [
      ...verdicts.filter(
        ({ runId, fence, outcome }) => outcome !== "succeeded" || session.held.get(fence)?.runId !== runId,
      ),
      ...told.filter((claim) => !session.known(claim)),
    ]);
    for (const claim of told) {
      const standing = standings.of(claim);
      if (standing?.standing === "held" && !session.known(claim))
        session.heard(claim.fence, { ...standing, runId: claim.runId, claimedMs: 0 });
    }
    await this.#report(session, reports, standings, refused);
    await this.#writeLogs(session, logs, standings, refused);
    const held = <Asking extends Spoken>(some: Asking[], part: Refusal["part"]) =>
      some.filter((one) => isHeld(session, one, standings) || !refused.push(stale(one, part, standings)));
    const failed = new Set<string>();
    const refuse: Refuse = (claim, part, error) => {
      failed.add(claimText(claim));
      refused.push(refusal(claim, part, error.code, error.message));
    };
    if (spans.length > 0)
      await this.#options.store.runs.leaveSpans(held(spans, "span"), this.#options.storeClock.now(), session.id);
    await this.#flow.save(held(states, "state"), refuse);
    const spawned = spawns.length > 0 ? await this.#flow.spawn(key, held(spawns, "spawn"), refuse) : undefined;
    const [ask] = held(asked, "inputs");
    const inputs = ask && (await this.#flow.inputs(ask, refuse));
    const [wish] = held(wished, "secret");
    const secret = wish && (await this.#flow.secret(wish, refuse));
    // A success that came with what was not done, such as children for its join, would not be what its worker means.
    const unmeant = verdicts.filter((one) => one.outcome === "succeeded" && failed.has(claimText(one)));
    for (const { runId, fence } of unmeant)
      refused.push(refusal({ runId, fence }, "verdict", "REQUEST_INVALID", "what was asked for with it was refused"));
    const meant = unmeant.length === 0 ? verdicts : verdicts.filter((one) => !unmeant.includes(one));
    await this.#settle(key, session, meant, standings, refused);
    return { ...(spawned ? { spawned } : {}), ...(inputs ? { inputs } : {}), ...(secret ? { secret } : {}) };
  }

  /** What the book says of claims that this server does not know. */
  async #look(session: Attached, strange: Spoken[]): Promise<Standings> {
    if (strange.length === 0) return new Standings([], []);
    return new Standings(strange, await this.#options.store.workers.look(session.id, strange));
  }

  async #report(
    session: Attached,
    reports: NonNullable<PollRequest["reports"]>,
    standings: Standings,
    refused: Refusal[],
  ): Promise<void> {
    const nowMs = this.#options.storeClock.now();
    const good = reports.filter(
      (report) => isHeld(session, report, standings) || !refused.push(stale(report, "report", standings)),
    );
    if (good.length === 0) return;
    await this.#options.store.claims.report(
      session.id,
      good.map((report) => {
        const { runId, fence, startedAgoMs } = report;
        const claimedMs = session.known(report)?.claimedMs ?? 0;
        const startedMs = Math.max(claimedMs, nowMs - startedAgoMs);
        const progress = kept(report, "report", report.progress, refused);
        return { runId, fence, startedMs, progress };
      }),
    );
  }

  async #writeLogs(session: Attached, logs: GivenLog[], standings: Standings, refused: Refusal[]): Promise<void> {
    const nowMs = this.#options.storeClock.now();
    const lines: LogLine[] = [];
    for (const line of logs) {
      const attempt = session.known(line)?.attempt ?? standings.of(line)?.attempt ?? 1;
      if (isForeign(standings.of(line))) refused.push(stale(line, "log", standings));
      else {
        const fields = kept(line, "log", line.fields, refused);
        const { runId, fence, level = "info", message, agoMs = 0 } = line;
        lines.push({
          runId,
          fence,
          attempt,
          atMs: nowMs - agoMs,
          level,
          message,
          fields: fields === null ? null : JSON.parse(fields),
        });
      }
    }
    if (lines.length > 0) await this.#options.store.runs.writeLogs(lines, nowMs, session.id);
  }

  async #settle(
    key: WorkerKey,
    session: Attached,
    verdicts: GivenVerdict[],
    standings: Standings,
    refused: Refusal[],
  ): Promise<void> {
    const { storeClock, definitions, random, store } = this.#options;
    const nowMs = storeClock.now();
    const settlements: Settlement[] = [];
    const notes: LogLine[] = [];
    const holdings = verdicts.map((given) => session.known(given) ?? standings.of(given));
    await definitions.ensure(
      holdings.flatMap((one) => (one && one.taskId > 0 ? [{ taskId: one.taskId, version: 1 }] : [])),
    );
    const onwards = await this.#flow.onwards(key, verdicts);
    for (const given of verdicts) {
      const standing = standings.of(given);
      if (isForeign(standing)) {
        refused.push(stale(given, "verdict", standings));
        continue;
      }
      // What goes on is settled again: the server that did so may have died before it tied up what comes after the commit.
      const goesOn = given.onward !== undefined && standing?.outcome === "succeeded";
      if (standing && !goesOn && isRepeated(given, standing)) {
        session.drop(given.fence);
        continue;
      }
      const known: Holding = session.known(given) ?? {
        ...(standing as ClaimStanding),
        runId: given.runId,
        claimedMs: 0,
      };
      const definition = definitions.get(known.taskId)?.definition;
      const note = (message: string) =>
        void notes.push({
          runId: given.runId,
          fence: given.fence,
          attempt: known.attempt,
          atMs: nowMs,
          level: "warn",
          message,
          fields: null,
        });
      const attempt = known.attempt - (known.losses ?? 0);
      const onward = onwards.get(claimText(given));
      const verdict = verdictOf(given, { definition, attempt, nowMs, random, note, onward });
      settlements.push(settlementOf(session.id, given, known, verdict, nowMs));
    }
    if (notes.length > 0) await store.runs.writeLogs(notes, nowMs, session.id);
    if (settlements.length === 0) return;
    for (const { fence } of settlements) session.drop(fence);
    const late = await this.#settling.add(settlements);
    for (const { runId, fence } of settlements)
      if (late.has(fence)) refused.push(refusal({ runId, fence }, "verdict", "FENCE_STALE"));
  }

  /** Never given to anybody. */
  #release(session: Attached, runs: ClaimedRun[]): void {
    const nowMs = this.#options.storeClock.now();
    const settlements = runs.map((run) => {
      session.drop(run.fence);
      return settlementOf(session.id, run, { ...run, claimedMs: nowMs }, { kind: "released" }, nowMs);
    });
    this.#settling.add(settlements).catch((error) =>
      // They stay on the book of this session, whose next comparison finds them.
      this.#options.log.debug({ error: messageOf(error) }, "claims could not be given back"),
    );
  }

  // ---- what it is told

  #given(run: ClaimedRun, nowMs: number): PollAnswer["runs"][number] {
    const { runId, fence, attempt, dueMs, slotMs, priority, key, payload, taskId, state = null } = run;
    const shard = run.shard ? { index: run.shard[0], total: run.shard[1] } : null;
    const task = this.#options.definitions.get(taskId)?.definition.name ?? "";
    const dueInMs = dueMs - nowMs;
    // The payload last: a shell that cannot parse JSON can still cut it out.
    return { runId, fence, task, attempt, dueInMs, dueMs, slotMs, priority, shard, state, key, payload };
  }

  #facts(runs: ClaimedRun[]): PollAnswer["tasks"] {
    return [...new Set(runs.map(({ taskId }) => taskId))].flatMap((taskId) => {
      const known = this.#options.definitions.get(taskId);
      if (!known) return [];
      const { name, timeoutMs, graceMs, onWorkerLost, retry } = known.definition;
      return [{ task: name, taskId, version: known.version, timeoutMs, graceMs, onWorkerLost, retry }];
    });
  }
}

const traced = (trace: RunTrace | undefined) => (trace === undefined ? {} : { trace });
