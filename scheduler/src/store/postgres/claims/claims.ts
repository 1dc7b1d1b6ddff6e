import type { SqlClient } from "../../../base/change.ts";
import type { ClaimedRun, ClaimRequest, ClaimStore, Settlement } from "../../../run/claim-store.ts";
import { firstOfEach } from "../../../run/first-of-each.ts";
import type { CheckTransaction } from "../cluster/callers-transaction.ts";
import type { Database } from "../database.ts";
import { claim, claimingOf } from "./claim.ts";
import { turn } from "./fairness.ts";
import { finishAll, finishIn } from "./finish.ts";
import { adopt, heldBy, recalls, report, roomElsewhere } from "./held-claims.ts";
import { comingOf } from "./next-due.ts";
import { reclaim } from "./reclaim.ts";
import { refused, tellLate } from "./refused.ts";
import { release } from "./release.ts";
import { allEnded, asEnded, retry } from "./retries.ts";
import { byNumber } from "./settle.ts";

export function claimStore(database: Database, requireTransaction: CheckTransaction): ClaimStore {
  const claiming = claimingOf(database);
  const { memory, clock } = database;
  return {
    async claim(request) {
      const before = memory.highs.fence;
      const answer = await claim(claiming, request);
      return { ...answer, runs: await remembered(database, request, answer.runs, before) };
    },
    coming: comingOf(database),
    async turn(request) {
      const before = memory.highs.fence;
      const answer = await turn(claiming, request);
      return { ...answer, runs: await remembered(database, request, answer.runs, before) };
    },
    settle: (sessionId, settlements, nowMs) => settle(database, sessionId, settlements, nowMs),
    async settleIn(client, _sessionId, settlement, nowMs) {
      await requireTransaction(client);
      memory.settledIn(settlement.fence);
      return settleIn(client, database.schema, settlement, nowMs).catch((error) => database.refused(error));
    },
    async heldBy(sessionId) {
      const runs = unsettled(database, await heldBy(database, sessionId));
      memory.booked(sessionId, runs, clock.monotonic());
      return runs;
    },
    async adopt(oldSessionId, newSessionId) {
      const runs = unsettled(database, await adopt(database, oldSessionId, newSessionId));
      memory.adopted(oldSessionId, newSessionId, runs, clock.monotonic());
      return runs;
    },
    roomElsewhere: (sessionId, taskIds) => roomElsewhere(database, sessionId, taskIds),
    recalls: (sessionId) => recalls(database, sessionId),
    report: (sessionId, reports) => report(database, sessionId, reports),
    reclaim: (sessionId, silentForMs, nowMs, limit) => reclaim(database, { sessionId, silentForMs, nowMs, limit }),
  };
}

/**
 * Caches the claims that the store returned. If the fence of a claim is not above `before`, the highest fence that this process had seen
 * when it sent the request, the store has issued a fence twice, so the store has lost data. In that case no run is started, and the claims
 * are released.
 */
async function remembered(
  database: Database,
  { sessionId, nowMs }: ClaimRequest,
  runs: ClaimedRun[],
  before: number,
): Promise<ClaimedRun[]> {
  const { memory, clock, recovery } = database;
  if (recovery && runs.some(({ fence }) => fence <= before)) {
    await recovery.wentBack("fences were given out again");
    await recovery.join();
    const back = runs.map((run) => ({
      ...run,
      startedMs: null,
      endedMs: nowMs,
      verdict: { kind: "released" as const },
    }));
    await settleStanding(database, back, nowMs);
    return [];
  }
  memory.claimed(sessionId, runs, nowMs, clock.monotonic());
  return runs;
}

/**
 * Removes runs whose verdict this process has already written. A store that lost data may hand out such a run again; the recovery then
 * writes the verdict again, so the run must not start a second time.
 */
function unsettled({ memory }: Database, runs: ClaimedRun[]): ClaimedRun[] {
  const settled = runs.length > 0 ? memory.settledFences() : new Set<number>();
  return runs.filter(({ fence }) => !settled.has(fence));
}

async function settle(database: Database, sessionId: number, given: Settlement[], nowMs: number): Promise<Set<number>> {
  const { first: settlements, later } = firstOfEach(byNumber(given));
  const applied = await settleStanding(database, settlements, nowMs);
  const { memory, clock } = database;
  const inTransaction = memory.takeSettledIn(settlements);
  if (later.length > 0) await tellLate(database, sessionId, later, nowMs);
  if (applied.length === settlements.length) {
    memory.settled(settlements, nowMs, clock.monotonic());
    return new Set<number>();
  }
  const done = new Set(applied);
  const open = settlements.filter(({ fence }) => !done.has(fence));
  const stale = await refused(database, sessionId, open, nowMs);
  // The store has already applied these verdicts: in an earlier request whose reply was lost, or in the handler's own transaction. In the
  // second case the verdict is cached as "released": if the store loses it, the transaction's writes are lost too, and the run must run
  // again.
  const before = open
    .filter(({ fence }) => !stale.has(fence))
    .map((item) => (inTransaction.has(item.fence) ? { ...item, verdict: { kind: "released" as const } } : item));
  memory.settled([...settlements.filter(({ fence }) => done.has(fence)), ...before], nowMs, clock.monotonic());
  return stale;
}

/** Writes verdicts to the store. @returns the fences of the verdicts whose claim was still valid */
export function settleStanding(database: Database, settlements: Settlement[], nowMs: number): Promise<number[]> {
  return database.persist(async () => {
    const retries = await retry(database, settlements, nowMs);
    // If a retry was not accepted, the run or its task was stopped in the meantime, or the claim no longer belongs to this worker.
    const ended = await finishAll(database, allEnded(settlements, retries), nowMs);
    return [...retries.again, ...ended, ...(await release(database, settlements, nowMs))];
  });
}

async function settleIn(client: SqlClient, s: string, settlement: Settlement, nowMs: number): Promise<boolean> {
  const [ended] = asEnded(settlement);
  // The worker may send the verdict again after the handler has returned, with another end time. A row in the history can confirm that both
  // are the same verdict. The trace of a run (the few fields stored instead of a history row) cannot, so the row is kept.
  return ended !== undefined && (await finishIn(client, s, [{ ...ended, unkept: false }], nowMs)).length > 0;
}
