import type { SqlClient } from "../../../base/change.ts";
import { type Clock, pause } from "../../../base/clock.ts";
import { CarillonError, messageOf } from "../../../base/errors.ts";
import type { Log } from "../../../base/log.ts";
import type { Settlement } from "../../../run/claim-store.ts";
import { audited } from "../access/audit.ts";
import { notifySql } from "../cluster/signals.ts";
import { runState, slotOutcome } from "../states.ts";
import type { Memory, Remembered } from "./memory.ts";
import { putClaims, putEnqueues, putSessions, type RememberedClaim, type RememberedEnqueue } from "./resubmit.ts";
import { skipAhead } from "./skip.ts";
import { markIntactSql, type Recovering } from "./standing.ts";

export interface RecoveryOptions {
  /** The schema's name: `s` is quoted, `schema` is not. */
  s: string;
  schema: string;
  clock: Clock;
  log: Log;
  memory: Memory;
  /** Aborted when the process closes its store. */
  signal: AbortSignal;
  /** Runs a transaction that may write while the store refuses other writes. It is repeated until the store answers. */
  transaction<T>(work: (client: SqlClient) => Promise<T>): Promise<T>;
  /** Called when the store has lost data. Data that this process has read from the store may be lost too. */
  onBack(): void;
  /** Writes the verdicts whose claim is still valid, in the usual way. @returns how many were applied */
  settle(settlements: Settlement[], nowMs: number): Promise<number>;
}

/** How far each sequence is moved above all numbers that processes remember: more than are drawn in a minute at the highest rates. */
const skips = { numbers: 10_000_000, smallNumbers: 1_000, terms: 1_000, bases: 1 };
const firstPollMs = 25;
const longestPollMs = 250;
/** The number of entries per part, newest part first. If the store has all entries of a part, it also has the older parts. */
const partSize = 5_000;

/** The row of `cluster`, which is locked, with the server's present timeline, system id and time. */
interface Standing {
  /** The function `whole` (migrations/0086-relaxed.ts). */
  whole: boolean;
  timeline: string | null;
  nowTimeline: string | null;
  systemId: string | null;
  nowSystemId: string | null;
  recovery: number;
  since: number | null;
  recoveringTimeline: string | null;
  nowMs: number;
}

/**
 * Restores data that the store has acknowledged and now lacks. By the row of `cluster`, the store is in one of these states: *whole*;
 * *back*: the timeline of its log is not the one known to be complete, a process remembers more than the store has, or the server has
 * crashed since a relaxed enqueue (migrations/0086-relaxed.ts); *recovering*: from the moment at which the first process detects this,
 * until all sessions that were open have reported what they remember or their timeouts have passed. In the last two states the store
 * refuses every write that makes a decision.
 *
 * Each process reports the missing enqueues and claims, then the highest numbers and its sessions. Then it checks whether the recovery is
 * over, which is so after the last process has reported. Verdicts are sent in the usual way after the recovery; until then their runs are
 * claimed under the former fences, so that no other worker starts them. All steps can be repeated. A process that was connected before, and
 * connects again only after the recovery, also reports.
 */
export class Recovery implements Recovering {
  readonly #options: RecoveryOptions;
  /** The number of the last recovery that this process took part in, or that was over when it connected; null before its first check. */
  #known: number | null = null;
  /**
   * The last recovery in which this process reported, and the time at which that recovery began, ms. The time is needed because a store
   * that lost data may use the same number again.
   */
  #told: { number: number; since: number | null } | null = null;
  /** The last recovery number that this process read from the store. */
  #seen: number | null = null;
  #running: Promise<void> | undefined;
  /** The writing of verdicts after the recoveries so far. */
  #settling: Promise<void> = Promise.resolve();
  /** True while `#running` takes part in a recovery in which this process has reported. */
  #hasReported = false;
  /** True if the store's state must be read again once `#running` is through with what it has read. */
  #again = false;
  #wake: (() => void)[] = [];

  constructor(options: RecoveryOptions) {
    this.#options = options;
  }

  join(): Promise<void> {
    this.#running ??= this.#runs().finally(() => {
      this.#running = undefined;
      this.#wakeAll();
    });
    return this.#running;
  }

  async told(): Promise<void> {
    this.#joinInBackground();
    if (this.#hasReported) return;
    await Promise.race([this.join(), new Promise<void>((resolve) => this.#wake.push(resolve))]);
  }

  async settled(): Promise<void> {
    // Their errors have been logged (`#inBackground`).
    while (this.#running) await Promise.allSettled([this.#running]);
    await Promise.allSettled([this.#settling]);
  }

  found(whole: boolean, recovery: number | null): void {
    if (recovery !== null) this.#see(recovery);
    this.#known ??= whole ? recovery : null;
    if (!whole || (this.#known !== null && recovery !== this.#known)) this.#joinInBackground();
  }

  lost(): void {
    const { memory, signal } = this.#options;
    if (memory.relaxed && !signal.aborted) this.#joinInBackground();
  }

  #see(recovery: number): void {
    const isNew = this.#seen !== null && recovery !== this.#seen;
    this.#seen = recovery;
    if (isNew) this.#options.onBack();
  }

  async wentBack(why: string): Promise<void> {
    const { transaction, log } = this.#options;
    const known = this.#known;
    await transaction(async (client) => {
      const standing = await this.#standing(client);
      if (standing.since !== null || (known !== null && standing.recovery !== known)) return;
      log.error({ why }, "the store lacks what it has acknowledged: it went back in time");
      await this.#begin(client, standing);
    });
    this.#joinInBackground();
  }

  #joinInBackground(): void {
    this.#again = this.#running !== undefined;
    this.#inBackground(this.join());
  }

  #inBackground(work: Promise<void>): void {
    const { log, signal } = this.#options;
    work.catch((error) => {
      const fields = { error: messageOf(error) };
      if (signal.aborted) log.debug(fields, "this process stopped while it took part in the store's recovery");
      else log.error(fields, "this process could not take part in the store's recovery");
    });
  }

  #wakeAll(): void {
    for (const wake of this.#wake.splice(0)) wake();
  }

  async #runs(): Promise<void> {
    do {
      this.#again = false;
      this.#hasReported = false;
      await this.#run();
    } while (this.#again);
  }

  async #run(): Promise<void> {
    const { clock, transaction, signal } = this.#options;
    const before = this.#told;
    let pollMs = firstPollMs;
    for (;;) {
      const open = await transaction((client) => this.#open(client));
      if (open === null) break;
      const { number, since } = open;
      if (this.#told?.number !== number || this.#told.since !== since) {
        this.#hasReported = false;
        await this.#tell(number);
        this.#told = { number, since };
        pollMs = firstPollMs;
      }
      this.#hasReported = true;
      this.#wakeAll();
      if (await transaction((client) => this.#close(client, number))) break;
      await pause(clock, pollMs, signal);
      if (signal.aborted)
        throw new CarillonError("STOPPED", "this process stopped while the store was being recovered");
      pollMs = Math.min(2 * pollMs, longestPollMs);
    }
    this.#hasReported = false;
    if (this.#told === before || this.#told === null) return;
    const { number } = this.#told;
    // Read now, because the memory may have forgotten them by the time at which the verdicts of former recoveries are written.
    const settlements = this.#settlements();
    // Not awaited here: if the store refuses the verdicts because another recovery has begun, they wait until this process has taken part
    // in that one.
    this.#settling = this.#settling.catch(() => undefined).then(() => this.#settle(number, settlements));
    this.#inBackground(this.#settling);
  }

  /** Writes those of the verdicts that the store lacks. @param number the recovery to which they are counted */
  async #settle(number: number, settlements: Settlement[]): Promise<void> {
    const { transaction, log } = this.#options;
    if (settlements.length === 0) return;
    const nowMs = await transaction(async (client) => (await this.#standing(client)).nowMs);
    const applied = await this.#options.settle(settlements, nowMs);
    if (applied === 0) return;
    log.warn({ verdicts: applied }, "results that the store had lost were given to it again");
    await transaction((client) =>
      client.query(`update ${this.#options.s}.recovery set verdicts = verdicts + $2 where number = $1`, [
        number,
        applied,
      ]),
    );
  }

  async #standing(client: SqlClient): Promise<Standing> {
    const { s } = this.#options;
    const { rows } = await client.query(
      `select timeline, ${s}.log_timeline() as "nowTimeline", system_id as "systemId", ${s}.store_system() as "nowSystemId",
              recovery, recovering_since_ms as since, recovering_timeline as "recoveringTimeline",
              floor(extract(epoch from clock_timestamp()) * 1000 + clock_shift_ms)::float8 as "nowMs" from ${s}.cluster for update`,
    );
    if (!rows[0]) throw new Error("the cluster row is missing");
    // A statement of its own, because the first one may have waited for the lock and reads other tables as they were before the wait.
    const { rows: state } = await client.query(`select ${s}.whole() as whole`);
    return { ...rows[0], ...state[0] } as unknown as Standing;
  }

  /** @returns the recovery to take part in; null if there is none, or if it is over and this process need not report */
  async #open(client: SqlClient): Promise<{ number: number; since: number | null } | null> {
    const standing = await this.#standing(client);
    const { whole, nowTimeline, systemId, nowSystemId, recovery, since, recoveringTimeline } = standing;
    if (whole && (systemId === null || systemId === nowSystemId)) {
      const missed = this.#known !== null && recovery !== this.#known && this.#told?.number !== recovery;
      this.#know(recovery);
      // The time at which the missed recovery began is unknown, and is not needed because that recovery is over.
      return missed ? { number: recovery, since: null } : null;
    }
    // If the timeline differs, the server was promoted again during a recovery, so reported data may be lost again.
    if (since === null || recoveringTimeline !== nowTimeline) return this.#begin(client, standing);
    this.#know(recovery);
    return { number: recovery, since };
  }

  #know(recovery: number): void {
    this.#see(recovery);
    this.#known = recovery;
  }

  async #begin(
    client: SqlClient,
    { whole, recovery, since, timeline, nowTimeline, nowMs }: Standing,
  ): Promise<{ number: number; since: number }> {
    const { s, log } = this.#options;
    // The new number is also above the numbers of recoveries of which the store has lost the record.
    const number = Math.max(recovery, this.#known ?? 0) + 1;
    await client.query(
      `update ${s}.cluster set recovery = $1, recovering_since_ms = $2, recovering_timeline = ${s}.log_timeline()`,
      [number, nowMs],
    );
    await client.query(`insert into ${s}.recovery (number, began_ms) values ($1, $2) on conflict do nothing`, [
      number,
      nowMs,
    ]);
    await client.query(
      `insert into ${s}.recovery_session (recovery, session_id, node, timeout_ms)
       select $1, id, node, timeout_ms from ${s}.session where ended_ms is null on conflict do nothing`,
      [number],
    );
    // The former leader learns from the answer to its next heartbeat that it no longer leads. The signal makes all processes send
    // a heartbeat now.
    await client.query(`update ${s}.leadership set session_id = null`);
    await client.query(`select ${notifySql(s, "'leadership'")}`);
    this.#know(number);
    const crashed = !whole && since === null && timeline === nowTimeline;
    log.warn(
      { recovery: number, timeline, now: nowTimeline },
      crashed
        ? "the store's server crashed: work waits until the processes have reported the relaxed enqueues that it may lack"
        : "the store was promoted or restored: work waits until the processes have told what it may lack",
    );
    return { number, since: Math.floor(nowMs) };
  }

  /** Reports everything that this process remembers and the store lacks, except verdicts. */
  async #tell(number: number): Promise<void> {
    const { s, memory, transaction, log } = this.#options;
    const { highs, sessions } = memory;
    const runs = await this.#tellRuns();
    await transaction(async (client) => {
      const { nowMs } = await this.#standing(client);
      await client.query(
        // Sequences are only raised: if a process reports late, other processes may have drawn higher numbers already.
        `select setval(name::regclass, high) from unnest($1::text[], $2::bigint[]) as i (name, high)
         where high > coalesce(pg_sequence_last_value(name::regclass), 0)`,
        [
          [`${s}.run_id`, `${s}.fence`, `${s}.session_id_seq`],
          [highs.runId, highs.fence, highs.sessionId],
        ],
      );
      await client.query(`update ${s}.leadership set term = greatest(term, $1)`, [highs.term]);
      const back = await putSessions(client, s, [...sessions.values()], nowMs);
      await client.query(
        `update ${s}.recovery set runs = runs + $2, back_ms = greatest(back_ms, $3::bigint), back_to_ms = least(back_to_ms, $4::bigint)
         where number = $1`,
        [number, runs, back && Math.round(back.backMs), back && Math.floor(back.backToMs)],
      );
      const live = [...sessions.values()].filter(({ ended }) => !ended).map(({ sessionId }) => sessionId);
      // This includes sessions that the store had lost. Their heartbeats are now accepted while other processes have not reported yet.
      await client.query(
        `insert into ${s}.recovery_session (recovery, session_id, node, timeout_ms, told)
         select $1, id, node, timeout_ms, true from ${s}.session where id = any($2)
         on conflict (recovery, session_id) do update set told = true`,
        [number, live],
      );
    });
    if (runs > 0) log.warn({ runs }, "runs that the store had lost were given to it again");
  }

  /** Restores enqueues and claims, part by part. @returns the number of runs restored */
  async #tellRuns(): Promise<number> {
    const { s, clock, memory, transaction } = this.#options;
    const put = new Set<number>();
    for (const part of partsOf(memory.entries(clock.monotonic()))) {
      const { enqueues, claims } = part;
      const found = await transaction(async (client) => {
        await this.#standing(client);
        return [...(await putEnqueues(client, s, enqueues)), ...(await putClaims(client, s, claims))];
      });
      for (const runId of found) put.add(runId);
      if (found.length === 0) break;
    }
    return put.size;
  }

  #settlements(): Settlement[] {
    const { clock, memory } = this.#options;
    return memory
      .entries(clock.monotonic())
      .flatMap((entry) => (entry.kind === "settled" ? [...entry.settlements] : []));
  }

  /** Ends the recovery once all sessions have reported or their timeouts have passed. @returns true if the recovery is over */
  async #close(client: SqlClient, number: number): Promise<boolean> {
    const { s, schema, log } = this.#options;
    const { recovery, since, nowMs } = await this.#standing(client);
    if (recovery !== number) return false;
    if (since === null) return true;
    const { rows } = await client.query(
      `select node, $2::bigint - $3::bigint < timeout_ms as waited from ${s}.recovery_session where recovery = $1 and not told order by node`,
      [number, nowMs, since],
    );
    if (rows.some(({ waited }) => waited)) return false;
    const missing = rows.map(({ node }) => String(node));
    await skipAhead(client, s, schema, skips);
    await client.query(
      `update ${s}.cluster set timeline = ${s}.log_timeline(), system_id = ${s}.store_system(), recovering_since_ms = null, recovering_timeline = null`,
    );
    await client.query(markIntactSql(s));
    const { rows: ended } = await client.query(
      `update ${s}.recovery set ended_ms = $2, missing = $3, waiting = (
         select count(*) from ${s}.run where state = ${runState.ready} and due_ms >= back_to_ms and due_ms < began_ms)
       where number = $1 returning back_ms as "backMs", runs`,
      [number, nowMs, missing],
    );
    await client.query(`delete from ${s}.recovery_session where recovery <= $1`, [number]);
    const after = { ...(ended[0] as { backMs: number | null; runs: number }), missing };
    await audited(client, s, {
      atMs: nowMs,
      who: "carillon",
      act: "recover",
      about: "cluster" as const,
      named: schema,
      before: null,
      after,
      why: "the store crashed, was promoted, restored, or lacked what it had acknowledged",
    });
    await client.query(`select ${notifySql(s, "'leadership'")}`);
    log.warn(
      { recovery: number, tookMs: Math.round(nowMs - since), ...after },
      "the store is whole again; work goes on",
    );
    return true;
  }
}

/**
 * SQL: the most runs that may have been started by processes that did not report, and that may now be started a second time.
 * @param r the alias of the row of `recovery`
 */
export const inDoubtSql = (s: string, r: string) => `case when ${r}.missing = '{}' then 0 else ${r}.waiting + (
  select count(*) from ${s}.slot where slot_ms >= ${r}.back_to_ms and slot_ms < ${r}.began_ms and accepted_ms >= ${r}.began_ms
  and outcome = ${slotOutcome.run})::int end`;

/**
 * Yields parts of the memory, the newest part first; the entries of a part are ordered oldest first. If a run has several claims, the last
 * counts.
 */
function* partsOf(
  entries: readonly Remembered[],
): Generator<{ enqueues: RememberedEnqueue[]; claims: RememberedClaim[] }> {
  const claimed = new Set<number>();
  let [enqueues, claims]: [RememberedEnqueue[], RememberedClaim[]] = [[], []];
  for (const entry of entries.toReversed()) {
    if (entry.kind === "enqueued")
      for (let i = entry.writes.length - 1; i >= 0; i--)
        enqueues.push({
          write: entry.writes[i] as RememberedEnqueue["write"],
          runId: entry.ids[i] as number,
          atMs: entry.atMs,
        });
    if (entry.kind === "claimed")
      for (const run of entry.runs.toReversed()) {
        if (claimed.has(run.runId)) continue;
        claimed.add(run.runId);
        claims.push({ run, sessionId: entry.sessionId, claimedMs: entry.atMs });
      }
    if (enqueues.length + claims.length < partSize) continue;
    yield { enqueues: enqueues.reverse(), claims: claims.reverse() };
    [enqueues, claims] = [[], []];
  }
  yield { enqueues: enqueues.reverse(), claims: claims.reverse() };
}
