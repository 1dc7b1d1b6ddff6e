import type { HandedSecrets } from "../access/secrets/secrets.ts";
import type { SqlClient } from "../base/change.ts";
import { type Clock, EarliestTimer } from "../base/clock.ts";
import { type CarillonError, messageOf } from "../base/errors.ts";
import type { Pulse } from "../cluster/session-store.ts";
import type { Signal } from "../cluster/signal-store.ts";
import { noStandIn, notStarted, type StandIn } from "../cluster/stand-in.ts";
import type { ClaimAct } from "../run/claim.ts";
import type { ClaimedRun, ClaimRequest, LocalClaims, Settlement, Verdict } from "../run/claim-store.ts";
import type { RunFlow } from "../run/flow.ts";
import type { Handler } from "../run/handler.ts";
import type { LogLine } from "../run/run-record.ts";
import { backlogRuns, claimsPerStatement, guardMs, heldMax, ignoredAbortMs, vainMs } from "./bounds.ts";
import { ClaimSync } from "./claim-sync.ts";
import { AddressedRuns } from "./claiming/addressed-runs.ts";
import { ClaimWindow } from "./claiming/claim-window.ts";
import { Fairness } from "./claiming/fairness.ts";
import { HandOn } from "./claiming/hand-on.ts";
import { LocalClaimer } from "./claiming/local-claims.ts";
import { Pace } from "./claiming/pace.ts";
import { RecentlySettled } from "./claiming/recently-settled.ts";
import { Drain } from "./drain.ts";
import { EventLoopLag } from "./event-loop-lag.ts";
import { Idle } from "./idle.ts";
import type { WorkerOptions } from "./options.ts";
import { ignoredAbort, sessionLost, shutsDown, tookTooLong } from "./reasons.ts";
import { Recalls } from "./recalls.ts";
import { Reporter } from "./reporter.ts";
import { RunEvents } from "./run-events.ts";
import { call } from "./running/call.ts";
import { DueQueue } from "./running/due-queue.ts";
import { DueTimer } from "./running/due-timer.ts";
import { HeldRun, type RunHost } from "./running/held-run.ts";
import { LogBuffer } from "./running/log-buffer.ts";
import { Turn } from "./running/turn.ts";
import { cancelled, failed, settlementOf, succeeded } from "./running/verdict.ts";
import { WaitingRuns, waitingOf } from "./running/waiting-runs.ts";
import { stopWork } from "./stop.ts";
import { VerdictBatcher } from "./verdict-batcher.ts";

export type { WorkerOptions } from "./options.ts";

/**
 * Executes runs: claims them ahead of time, starts each from a local timer at its due time, and sends verdicts in batches. While this
 * process's session may be over, another worker may hold its claims: then no run starts, and running handlers are aborted.
 */
export class Worker implements RunHost {
  readonly clock: Clock;
  readonly flow: RunFlow | undefined;
  readonly secrets: HandedSecrets | undefined;
  readonly #options: WorkerOptions;
  readonly #verdicts: VerdictBatcher;
  readonly #reporter: Reporter;
  readonly #logs: LogBuffer;
  readonly #runEvents: RunEvents;
  readonly #localClaimer: LocalClaimer;
  readonly #recalls: Recalls;
  readonly #sync: ClaimSync;
  /** The claims, keyed by fence: a run may be claimed here again while the handler of its earlier claim is still stopping. */
  readonly #held = new Map<number, HeldRun>();
  readonly #waiting = new WaitingRuns();
  readonly #ended = new RecentlySettled();
  readonly #except = new Set<number>();
  readonly #overdue = new DueQueue();
  readonly #pace: Pace;
  readonly #window: ClaimWindow;
  readonly #own = new AddressedRuns();
  readonly #fairness: Fairness;
  readonly #handOn: HandOn;
  #running = 0;
  #startsOverdue = false;
  #fetching: Promise<void> | undefined;
  #fetchAgain = false;
  readonly #eventLoopLag: EventLoopLag;
  readonly #standIn: StandIn;
  readonly #drain: Drain;
  #stopping = false;
  #stopped = false;
  readonly #dueTimer: DueTimer;
  readonly #turn = new Turn(() => this.#startOverdue());
  /** True if the last claim left runs in the store, or may have left some. */
  #behind = true;
  #cancelGuard: () => void = () => undefined;
  readonly #fetchTimer: EarliestTimer;
  #fetchedAt = Number.NEGATIVE_INFINITY;
  readonly #idle: Idle;

  constructor(options: WorkerOptions) {
    this.#options = options;
    this.clock = options.clock;
    this.flow = options.flow;
    this.secrets = options.secrets;
    this.#fetchTimer = new EarliestTimer(options.clock, () => this.#fetch());
    this.#dueTimer = new DueTimer(options.clock);
    this.#idle = new Idle(options.clock, this.#held);
    this.#logs = new LogBuffer(options.writeLogs, options.clock, options.log);
    this.#runEvents = new RunEvents(options.listeners, () => this.now(), options.log, options.onStart);
    this.#eventLoopLag = new EventLoopLag(options.clock, options.log);
    const own = { ...options, now: () => this.now(), sessionId: () => options.membership.sessionId };
    this.#reporter = new Reporter(own);
    this.#verdicts = new VerdictBatcher({ ...own, acknowledged: (done, refused) => this.#acknowledged(done, refused) });
    this.#pace = new Pace(options.concurrency);
    this.#window = new ClaimWindow({ ...options, room: () => this.#room(), claim: () => this.#fetch() });
    this.#recalls = new Recalls({
      log: options.log,
      held: this.#held,
      asked: () => options.claims.recalls(options.membership.sessionId),
      cancel: (run, reason) => this.#do(run, run.on("cancel"), reason),
      release: (run) => this.#do(run, "report released"),
      report: (runs) => this.#reporter.report(runs),
    });
    this.#sync = new ClaimSync({
      ...own,
      held: this.#held,
      take: (ask) => this.#takeFrom(ask),
      drop: (run, reason) => this.#do(run, run.on("session lost"), reason),
      again: () => this.#fetchTimer.within(guardMs),
      moved: () => this.#startOverdue(),
    });
    this.#drain = new Drain({
      ...options,
      giveBack: (sparedMs) => this.#giveBack(sparedMs),
      claim: () => this.#fetch(),
    });
    const host = {
      inStep: () => this.#inStep(),
      room: () => this.#room(),
      request: (limit: number) => this.#request(limit),
      take: <Answer extends { runs: ClaimedRun[] }>(ask: () => Promise<Answer>) => this.#takeFrom(ask),
      nudge: (dueMs: number) => this.nudge(dueMs),
      lost: () => this.#sync.doubt(),
    };
    const queued = { ...own, overdue: this.#overdue, pace: this.#pace };
    this.#fairness = new Fairness({ ...queued, ...host });
    this.#handOn = new HandOn({
      ...queued,
      full: () => this.#running >= options.concurrency && !this.#sync.moving && options.membership.trusted(),
      giveBack: (run) => this.#do(run, run.on("give back")),
    });
    this.#localClaimer = new LocalClaimer(host);
    this.#standIn = options.standIn ?? noStandIn;
    this.#standIn.onBack(({ returnsBefore }) => this.#givenBack(returnsBefore));
    options.storeClock.onStep(() => this.#armDue());
    options.membership.onPulse((pulse) => this.#onPulse(pulse));
    options.membership.onRejoin((lost, session) => void this.#sync.read(lost, session));
    this.#fetch();
    this.#guard();
  }

  now(): number {
    return this.#options.storeClock.now();
  }

  get held(): number {
    return this.#held.size;
  }

  onSignal(signal: Signal): void {
    if (signal.kind === "ready") this.nudge(signal.dueMs);
    if (signal.kind === "directed" && signal.sessionId === this.#options.membership.sessionId)
      this.#addressed(signal.dueMs);
    if (signal.kind === "recall" || signal.kind === "resync") void this.#recalls.answer();
    if (signal.kind === "tasks" || signal.kind === "resync") {
      this.#except.clear();
      this.#fetch();
    }
  }

  /** Called when a run has become ready; `dueMs` is the run's due time. */
  nudge(dueMs: number): void {
    const inMs = this.#window.waitMs(dueMs);
    if (inMs <= 0) this.#fetch();
    else this.#fetchTimer.within(inMs);
  }

  /** Sends a request that enqueues runs from this process; the runs that are due at once may take this worker's free slots. */
  enqueuing<Answer>(send: (local: LocalClaims) => Promise<Answer>): Promise<Answer> {
    return this.#localClaimer.during(send);
  }

  /** Handles a heartbeat's reply, which makes up for lost signals and lost due times. */
  #onPulse({ nextReadyMs, nextMineMs, draining = false }: Pulse): void {
    this.#drain.pulse(draining, this.#stopping);
    if (this.#sync.pulse()) this.#fetch();
    if (nextMineMs != null) this.#addressed(nextMineMs);
    if (nextReadyMs === null) return;
    if (this.#except.size === 0 || this.clock.monotonic() - this.#fetchedAt >= vainMs) this.nudge(nextReadyMs);
  }

  #addressed(dueMs: number): void {
    this.#own.addressed(this.clock.monotonic());
    this.nudge(dueMs);
  }

  writeLog(line: LogLine): void {
    this.#logs.add(this.secrets?.redactor.line(line) ?? line);
  }

  async completeIn(client: SqlClient, run: HeldRun, result: string | null): Promise<boolean> {
    const verdict = this.#hidden({ kind: "ended", outcome: "succeeded", result, error: null });
    const { claims, membership } = this.#options;
    return claims.settleIn(client, membership.sessionId, settlementOf(run, verdict, this.now()), this.now());
  }

  /** Stops claiming, gives back waiting runs except those about to start, and waits for the running ones: see `stopWork`. */
  async stop(graceMs: number, closingMs: number): Promise<void> {
    this.#stopping = true;
    this.#verdicts.hurry();
    this.#fetchTimer.close();
    this.#window.close();
    this.#handOn.close();
    await stopWork(
      {
        ...this.#options,
        idle: this.#idle,
        claiming: Promise.all([this.#fetching, this.#fairness.stop(), this.#localClaimer.settled()]),
        giveBack: (sparedMs) => this.#giveBack(sparedMs),
        abort: (run) => this.#do(run, run.on("timeout"), shutsDown()),
        giveUp: (run) => this.#threw(run, ignoredAbort()),
        flushed: () => this.#verdicts.empty().then(() => this.#logs.flush()),
        held: this.#held,
      },
      graceMs,
      closingMs,
    );
    // From now on, a late reply to a claim starts no run here, and a handler that ends later has lost its claim.
    this.#stopped = true;
    this.#dueTimer.cancel();
    this.#cancelGuard();
    for (const run of this.#held.values()) run.cancelTimeout?.();
  }

  /** Releases all waiting runs except those due within `sparedMs` that can still start. */
  #giveBack(sparedMs: number): void {
    const spared = sparedMs > 0 ? this.#pace.startable(sparedMs) - this.#running : 0;
    for (const run of waitingOf(this.#held.values(), this.now() + sparedMs, spared)) this.#do(run, run.on("give back"));
  }

  // `since`: an earlier value of the stand-in thread's counter `returns`. If it has changed, the thread may have given claims back.
  #givenBack(since: number): void {
    if (since !== this.#standIn.returns) this.#giveBack(0);
  }

  /** Makes a claim. Only one claim is under way at a time; a call during a claim leads to another claim after it. */
  #fetch(): void {
    if (this.#stopping || (this.#drain.on && !this.#sync.inDoubt)) return;
    this.#fetchTimer.clear();
    if (this.#fetching) {
      this.#fetchAgain = true;
      return;
    }
    this.#fetching = this.#fetchAll();
  }

  async #fetchAll(): Promise<void> {
    do {
      this.#fetchAgain = false;
      let waitMs: number;
      try {
        const { sessionId } = this.#options.membership;
        if (this.#sync.inDoubt) await this.#sync.read(sessionId, sessionId);
        waitMs = await this.#fetchOnce();
      } catch (error) {
        this.#options.log.debug({ error: messageOf(error) }, "claiming failed; trying again");
        // The store may have carried out the claim whose reply was lost.
        this.#sync.doubt();
        waitMs = guardMs;
      }
      if (waitMs > 0) this.#fetchTimer.within(waitMs);
      else this.#fetchAgain = true;
    } while (this.#fetchAgain && !this.#stopping);
    // `#fetching` is cleared here and not when the promise resolves, because a call of `#fetch` between the two would be lost.
    this.#fetching = undefined;
  }

  /** Makes one claim, if there is room and the session is trusted. @returns how long to wait before the next claim, in ms */
  async #fetchOnce(): Promise<number> {
    const { claims, membership } = this.#options;
    const room = this.#room();
    this.#behind = true;
    if (room <= 0) this.#fairness.claimed(true);
    if (room <= 0 || !membership.trusted()) return guardMs;
    this.#fetchedAt = this.clock.monotonic();
    const limit = Math.min(room, claimsPerStatement);
    const { runs, nextDue } = await this.#takeFrom(() => claims.claim(this.#request(limit)));
    this.#window.took(runs.length, this.clock.monotonic() - this.#fetchedAt);
    this.#fairness.claimed(runs.length >= limit);
    this.#behind = runs.length >= limit;
    if (this.#behind) return this.#room() > 0 ? 0 : guardMs;
    return this.#window.afterMs(runs.length, await nextDue());
  }

  #request(limit: number): ClaimRequest {
    const { sessionId } = this.#options.membership;
    const nowMs = this.now();
    const untilMs = this.#window.untilMs(nowMs);
    const groupIds = this.#own.before(this.#options.groupIds, sessionId, this.clock.monotonic());
    const free = Math.max(0, this.#options.concurrency - this.#held.size + this.#verdicts.refused);
    return { sessionId, groupIds, exceptTaskIds: [...this.#except], untilMs, limit, free, nowMs };
  }

  /** Calls `ask` for claims and takes them, except those that ended here, or all if the session was lost, while the reply was under way. */
  #takeFrom<Answer extends { runs: ClaimedRun[] }>(ask: () => Promise<Answer>): Promise<Answer> {
    return this.#ended.during(async (hasEnded) => {
      const { membership, definitions } = this.#options;
      const { sessionId } = membership;
      const { returns } = this.#standIn;
      const answer = await ask();
      await definitions.ensure(answer.runs);
      // If the session was lost in the meantime, its remaining claims are returned when they are moved to the new session.
      const stands = membership.sessionId === sessionId;
      for (const claim of answer.runs) if (stands && !hasEnded(claim.fence)) this.#take(claim);
      this.#givenBack(returns);
      this.#drain.look();
      // With a backlog, these runs start in the next turn of the event loop: the next claim is sent first and does not wait for handlers.
      this.#armDue(answer.runs.length >= backlogRuns);
      void this.#recalls.retry();
      return answer;
    });
  }

  #inStep(): boolean {
    const { membership } = this.#options;
    const waits = this.#behind || this.#overdue.size > 0;
    return (
      !waits && !this.#stopping && !this.#drain.on && !this.#sync.inDoubt && !this.#sync.moving && membership.trusted()
    );
  }

  /** Returns how many more runs this worker may claim: those that can start in the claim-ahead time, at most `heldMax`, less those held. */
  #room(): number {
    const startable = this.#pace.startable(Math.max(this.#options.claimAheadMs, 100));
    return Math.min(heldMax, startable) - this.#held.size + this.#verdicts.refused;
  }

  #take(claim: ClaimedRun): void {
    if (this.#held.has(claim.fence)) return;
    const known = this.#options.definitions.get(claim.taskId);
    if (!known) throw new Error(`task ${claim.taskId} of run ${claim.runId} is not in the store`);
    const run = new HeldRun(claim, known, this);
    this.#held.set(claim.fence, run);
    if (!this.#options.handlerOf(known.definition)) {
      this.#except.add(claim.taskId);
      this.#do(run, run.on("give back"));
    } else this.#waiting.push(run);
  }

  #armDue(yields = false): void {
    const least = this.#waiting.least;
    if (least === undefined || this.#stopped || (this.#stopping && this.#held.size === 0)) return;
    this.#options.storeClock.sharpen();
    this.#dueTimer.set(this.#options.storeClock.until(least), () => this.#startDue(), yields);
  }

  #startDue(): void {
    const nowMs = this.now();
    for (let least = this.#waiting.least; least !== undefined && least <= nowMs; least = this.#waiting.least)
      this.#waiting.shiftInto(this.#overdue, nowMs);
    this.#startOverdue();
    this.#armDue();
  }

  #startOverdue(): void {
    const { concurrency, membership } = this.#options;
    if (this.#sync.moving || this.#stopped) return;
    this.#standIn.look();
    // While this is true, a run that ends at once frees its slot for the next run of this loop, not in a later turn of the event loop.
    this.#startsOverdue = true;
    try {
      while (this.#overdue.size > 0 && this.#running < concurrency) {
        // One reading of the clock serves the whole start: at ten thousand starts at once, reading clocks took a sixth of the time.
        const mono = this.clock.monotonic();
        // In this order: a turn that starts nothing is not continued by a timer, else a worker without trust would try in each turn.
        if (!membership.trusted(mono) || !this.#turn.lasts(mono)) break;
        const run = this.#overdue.shift() as HeldRun;
        if (run.expired) this.#do(run, run.on("give back")); // The run is given back; its next claim ends it as expired.
        if (run.state !== "waiting") continue;
        run.mark = this.#standIn.starts(run.fence);
        if (run.mark === notStarted) this.#standIn.look();
        else if (run.on("due") === "start") this.#start(run, mono);
      }
    } finally {
      this.#startsOverdue = false;
    }
    this.#turn.ended(this.clock, this.#overdue.size > 0);
    this.#handOn.look();
  }

  #start(run: HeldRun, mono: number): void {
    const { timeoutMs } = run.policies;
    run.startedMs = this.#options.storeClock.at(mono);
    run.startedMono = mono;
    this.#running++;
    if (timeoutMs !== null)
      run.cancelTimeout = this.clock.after(timeoutMs, () => this.#do(run, run.on("timeout"), tookTooLong(timeoutMs)));
    this.#runEvents.tell(run);
    call(this.#options.handlerOf(run.known.definition) as Handler, run, this.#returned, this.#threw);
  }

  readonly #returned = (run: HeldRun, value: unknown): void => {
    if (run.on("returned") === "report") this.#end(run, succeeded(run, value));
  };

  readonly #threw = (run: HeldRun, error: unknown): void => {
    if (run.on("threw") === "report") this.#end(run, failed(run, error, this.now(), this.#options.random));
  };

  #end(run: HeldRun, verdict: Verdict): void {
    run.cancelTimeout?.();
    this.#running--;
    const mono = this.clock.monotonic();
    if (this.#pace.took(mono - run.startedMono)) this.#fetch();
    this.#send(run, verdict, mono);
    if (this.#overdue.size === 0) return;
    this.#fairness.ended();
    if (this.#startsOverdue) return;
    this.#startsOverdue = true;
    queueMicrotask(this.#turn.again);
  }

  readonly #hidden = (verdict: Verdict): Verdict => this.secrets?.redactor.verdict(verdict) ?? verdict;

  #send(run: HeldRun, said: Verdict, mono = this.clock.monotonic()): void {
    if (this.#stopped) return;
    const verdict = this.#hidden(said);
    this.#verdicts.add(settlementOf(run, verdict, this.#options.storeClock.at(mono)));
    if (verdict.kind !== "released") this.#runEvents.tell(run, verdict);
    this.#idle.look();
  }

  #acknowledged(settlements: Settlement[], refused: Set<number>): void {
    for (const { runId, fence, verdict } of settlements) {
      const run = this.#held.get(fence);
      this.#standIn.ended(run?.mark ?? notStarted);
      if (refused.has(fence) && verdict.kind !== "released")
        this.#options.log.warn({ run: runId, fence }, "a verdict was refused: the claim was taken back before it came");
      run?.on(refused.has(fence) ? "refused" : "acknowledged");
      this.#held.delete(fence);
    }
    this.#ended.add(settlements);
    this.#idle.look();
    // Slots are free and no run waits here, but the last claim left runs in the store.
    if (this.#behind && !this.#fetching && this.#held.size < this.#options.concurrency) this.#fetch();
  }

  #do(run: HeldRun, act: ClaimAct, reason?: CarillonError): void {
    switch (act) {
      case "abort":
        run.abort(reason as CarillonError);
        run.cancelTimeout?.();
        // If the handler never returns, this timer ends the claim; the handler's code then runs on without a claim.
        run.cancelTimeout = this.clock.after(ignoredAbortMs, () => this.#threw(run, ignoredAbort()));
        return;
      case "report cancelled":
        this.#send(run, cancelled(reason as CarillonError));
        return;
      case "report released":
        this.#send(run, { kind: "released" });
        return;
      case "drop":
        this.#held.delete(run.fence);
        this.#idle.look();
    }
  }

  /**
   * While this process's session may be over, drops the waiting runs and aborts the running handlers. A handler is aborted at once if the
   * store may not know that its run has started, because then the run has no grace period; otherwise when its grace period ends.
   */
  #guard(): void {
    this.#cancelGuard = this.clock.after(guardMs, () => {
      const { membership } = this.#options;
      // The timer is set again first, so that it fires next if a handler started below blocks the event loop.
      this.#guard();
      this.#eventLoopLag.look(this.#held.values());
      if (membership.doubtMs() > 0) {
        for (const run of this.#held.values()) this.doubt(run, guardMs);
      } else {
        // The session is alive, so runs that were dropped while it was in doubt are still its claims, and no signal reports them.
        if (this.#sync.inDoubt) this.#fetch();
        this.#startOverdue();
        this.#handOn.giveUp();
        if (this.#running > 0 && !this.#sync.moving)
          void this.#reporter.reportLong(this.#held.values(), this.clock.monotonic());
        void this.#recalls.retry();
      }
    });
  }

  /** Also called when a handler reads its signal, so that a process that was suspended notices the loss before its next timer fires. */
  doubt(run: HeldRun, marginMs = 0): void {
    if (run.state !== "waiting" && run.state !== "running") return;
    const doubtMs = this.#options.membership.doubtMs();
    const graceMs = run.reported ? run.known.definition.graceMs : 0;
    if (doubtMs === 0 || doubtMs + marginMs < graceMs) return;
    // If the session turns out to be alive, the store still has the claim that is dropped here, so the claims must be read again.
    if (run.state === "waiting") this.#sync.doubt();
    this.#do(run, run.on("session lost"), sessionLost("this process's session is in doubt; another may have the run"));
  }
}
