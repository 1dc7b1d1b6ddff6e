import type { ClaimStanding, WorkerKey } from "../../access/worker-store.ts";
import type { GivenLog, GivenVerdict, PollAnswer, PollRequest, Refusal } from "../../api/worker-protocol.ts";
import { isStoreAway } from "../../base/errors.ts";
import type { Random } from "../../base/random.ts";
import type { Settlement } from "../../run/claim-store.ts";
import { definitionFor } from "../../run/enqueue-options.ts";
import { firstOfEach } from "../../run/first-of-each.ts";
import { latenessMs, type OnStart } from "../../run/handling/lateness.ts";
import type { LogLine } from "../../run/run-record.ts";
import type { Definitions } from "../../store/definitions.ts";
import type { Store } from "../../store/store.ts";
import type { StoreClock } from "../../store/store-clock.ts";
import { handlerTask } from "../../task/schedule-of.ts";
import {
  claimText,
  inexactRefusal,
  isForeign,
  isHeld,
  kept,
  refusal,
  type Spoken,
  Standings,
  stale,
} from "../refusals.ts";
import type { FlowCalls, Refuse } from "./flow-calls.ts";
import type { InexactItems } from "./inexact-parts.ts";
import type { Attached, Holding } from "./sessions.ts";
import type { VerdictBatches } from "./verdict-batches.ts";
import { settlementOf, verdictOf } from "./verdicts.ts";

export interface ListeningOptions {
  store: Store;
  definitions: Definitions;
  storeClock: StoreClock;
  random: Random;
  flow: FlowCalls;
  verdictBatches: VerdictBatches;
  onStart?: OnStart;
}

const endedBefore = "this poll says before how the claim ended; the first verdict counts, this one is recorded as late";
const namedBefore = "this poll says this of the claim before; the first counts, this one is left out";

/** Handles those parts of a poll that refer to claims: verdicts, progress reports, log lines, and the requests of handlers. */
export class Listening {
  readonly #options: ListeningOptions;

  constructor(options: ListeningOptions) {
    this.#options = options;
  }

  /**
   * Handles the parts of a poll.
   * @param refused gets a refusal for each part that was refused
   * @param inexact the items that contain a number that JavaScript cannot represent exactly
   * @throws the store's error; unless the store is unreachable, after all other parts have been handled
   */
  async listen(
    key: WorkerKey,
    session: Attached,
    request: PollRequest,
    refused: Refusal[],
    inexact: InexactItems = new Map(),
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
    // The claims in the store are read for claims that are not cached, and for all verdicts except successes, because an earlier poll may
    // have sent the verdict to another server. For a success on a cached claim, the write itself reports whether the claim is still valid.
    const standings = await this.look(session, [
      ...verdicts.filter(
        ({ runId, fence, outcome }) => outcome !== "succeeded" || session.held.get(fence)?.runId !== runId,
      ),
      ...told.filter((claim) => !session.known(claim)),
    ]);
    for (const claim of told) {
      const standing = standings.of(claim);
      if (standing?.standing === "held" && !session.known(claim))
        session.heard(claim.fence, { ...standing, runId: claim.runId });
    }
    const held = <Asking extends Spoken>(some: Asking[], part: Refusal["part"]) =>
      some.filter((one) => isHeld(session, one, standings) || !refused.push(stale(one, part, standings)));
    const heldOnce = <Asking extends Spoken>(some: Asking[], part: Refusal["part"]) => {
      const { first, later } = firstOfEach(held(some, part));
      for (const claim of later) refused.push(refusal(claim, part, "REQUEST_INVALID", namedBefore));
      return { first, later };
    };
    const failed = new Set<string>();
    let fault: { error: unknown } | undefined;
    /**
     * Handles one part; if that fails because of a defect of this server, the other parts are handled nevertheless.
     * @param wishes the claims whose requests fail in that case
     */
    const apart = async <Done>(work: () => Promise<Done>, wishes: Spoken[] = []): Promise<Done | undefined> => {
      try {
        return await work();
      } catch (error) {
        if (isStoreAway(error)) throw error;
        fault ??= { error };
        for (const claim of wishes) failed.add(claimText(claim));
        return undefined;
      }
    };
    await apart(() => this.#report(session, heldOnce(reports, "report").first, refused, inexact));
    await apart(() => this.#writeLogs(session, logs, standings, refused, inexact));
    const refuse: Refuse = (claim, part, error) => {
      failed.add(claimText(claim));
      refused.push(refusal(claim, part, error.code, error.message));
    };
    if (spans.length > 0) {
      const { first } = heldOnce(spans, "span");
      await apart(async () => {
        const taken = await this.#options.store.runs.leaveSpans(first, this.#options.storeClock.now(), session.id);
        for (const span of first) if (!taken.has(span.runId)) refused.push(refusal(span, "span", "FENCE_STALE"));
      });
    }
    const exact = <Asking extends Spoken>(some: Asking[], part: Refusal["part"]) =>
      some.filter((one) => {
        const found = inexact.get(one);
        if (found) refused.push(inexactRefusal(one, part, found));
        if (found) failed.add(claimText(one));
        return !found;
      });
    const saved = heldOnce(states, "state");
    for (const claim of saved.later) failed.add(claimText(claim));
    for (const state of exact(saved.first, "state")) await apart(() => this.#options.flow.save(state, refuse), [state]);
    const spawned =
      spawns.length > 0
        ? await apart(() => this.#options.flow.spawn(key, exact(held(spawns, "spawn"), "spawn"), refuse), spawns)
        : undefined;
    const [ask] = held(asked, "inputs");
    const inputs = ask && (await apart(() => this.#options.flow.inputs(ask, refuse)));
    const [wish] = held(wished, "secret");
    const secret = wish && (await apart(() => this.#options.flow.secret(wish, refuse)));
    // A success is refused if a request in the same poll failed, such as children for its join, because the worker reported the
    // success assuming that the request would succeed. A verdict is also refused if it contains a number that would be stored
    // inexactly.
    const unmeant = new Map(
      firstOfEach(verdicts).first.flatMap((one) => {
        const found = inexact.get(one);
        if (found) return [[claimText(one), inexactRefusal(one, "verdict", found)]];
        if (one.outcome !== "succeeded" || !failed.has(claimText(one))) return [];
        return [[claimText(one), refusal(one, "verdict", "REQUEST_INVALID", "what was asked for with it was refused")]];
      }),
    );
    const meant = verdicts.filter((one) => {
      const why = unmeant.get(claimText(one));
      return why === undefined || !refused.push(why);
    });
    await apart(() => this.#settle(key, session, meant, standings, refused));
    if (fault) throw fault.error;
    return { ...(spawned ? { spawned } : {}), ...(inputs ? { inputs } : {}), ...(secret ? { secret } : {}) };
  }

  /** Reads the state of claims from the store. */
  async look(session: Attached, strange: Spoken[]): Promise<Standings> {
    if (strange.length === 0) return new Standings([], []);
    return new Standings(strange, await this.#options.store.workers.look(session.id, strange));
  }

  async #report(
    session: Attached,
    reports: NonNullable<PollRequest["reports"]>,
    refused: Refusal[],
    inexact: InexactItems,
  ): Promise<void> {
    const nowMs = this.#options.storeClock.now();
    if (reports.length === 0) return;
    const standing = await this.#options.store.claims.report(
      session.id,
      reports.map((report) => {
        const { runId, fence, startedAgoMs } = report;
        const claimedMs = session.known(report)?.claimedMs ?? 0;
        const startedMs = Math.max(claimedMs, nowMs - startedAgoMs);
        this.#started(session.known(report), startedMs);
        const progress = kept(report, "report", report.progress, refused, inexact);
        return { runId, fence, startedMs, progress };
      }),
    );
    for (const report of reports)
      if (!standing.has(report.fence)) refused.push(refusal(report, "report", "FENCE_STALE"));
  }

  /** Reports the lateness of a run's first attempt, once. */
  #started(holding: Holding | undefined, startedMs: number | null): void {
    const { onStart, definitions } = this.#options;
    if (!onStart || startedMs === null || holding?.readyMs === undefined || holding.isStarted) return;
    holding.isStarted = true;
    const task = definitions.get(holding.taskId)?.definition;
    if (task && holding.attempt === 1)
      onStart(handlerTask(task), holding.runId, latenessMs({ dueMs: holding.readyMs }, startedMs));
  }

  async #writeLogs(
    session: Attached,
    logs: GivenLog[],
    standings: Standings,
    refused: Refusal[],
    inexact: InexactItems,
  ): Promise<void> {
    const nowMs = this.#options.storeClock.now();
    const lines = new Map<LogLine, GivenLog>();
    for (const line of logs) {
      const attempt = session.known(line)?.attempt ?? standings.of(line)?.attempt ?? 1;
      if (isForeign(standings.of(line))) refused.push(stale(line, "log", standings));
      else {
        const fields = kept(line, "log", line.fields, refused, inexact);
        const { runId, fence, level = "info", message, agoMs = 0 } = line;
        const told = { level, message, fields: fields === null ? null : JSON.parse(fields) };
        lines.set({ runId, fence, attempt, atMs: nowMs - agoMs, ...told }, line);
      }
    }
    if (lines.size === 0) return;
    const left = await this.#options.store.runs.writeLogs([...lines.keys()], nowMs, session.id);
    // The store did not accept these lines: a cached claim may no longer exist, because the run was released and claimed again.
    for (const line of left) refused.push(refusal(lines.get(line) as GivenLog, "log", "FENCE_STALE"));
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
    const later = new Set(firstOfEach(verdicts).later);
    const tooLate = new Set<Settlement>();
    const notes: LogLine[] = [];
    const holdings = verdicts.map((given) => session.known(given) ?? standings.of(given));
    await definitions.ensure(
      holdings.flatMap((one) => (one && one.taskId > 0 ? [{ taskId: one.taskId, version: 1 }] : [])),
    );
    const onwards = await this.#options.flow.onwards(key, verdicts);
    for (const given of verdicts) {
      const standing = standings.of(given);
      if (isForeign(standing)) {
        refused.push(stale(given, "verdict", standings));
        continue;
      }
      const known: Holding = session.known(given) ?? {
        ...(standing as ClaimStanding),
        runId: given.runId,
      };
      const task = definitions.get(known.taskId)?.definition;
      const definition = task && definitionFor(task, known.overrides);
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
      const { losses = 0, snoozes = 0 } = known;
      const attempt = known.attempt - losses - snoozes;
      const verdict = verdictOf(given, {
        definition,
        attempt,
        snoozes,
        nowMs,
        random,
        note,
        onward: onwards.get(given),
      });
      const settlement = settlementOf(session.id, given, known, verdict, nowMs);
      this.#started(known, settlement.startedMs);
      settlements.push(settlement);
      if (later.has(given)) tooLate.add(settlement);
    }
    if (settlements.length > 0) {
      for (const { fence } of settlements) session.drop(fence);
      const late = await this.#options.verdictBatches.add(settlements);
      for (const settlement of settlements) {
        if (tooLate.has(settlement)) refused.push(refusal(settlement, "verdict", "FENCE_STALE", endedBefore));
        else if (late.has(settlement.fence)) refused.push(refusal(settlement, "verdict", "FENCE_STALE"));
      }
    }
    if (notes.length > 0) await store.runs.writeLogs(notes, nowMs, session.id);
  }
}
