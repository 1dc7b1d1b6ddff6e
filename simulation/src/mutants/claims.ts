import type { Mutant } from "./mutant.ts";

/** Bugs in claims, verdicts and reclaims. */
export const claimMutants: readonly Mutant[] = [
  {
    name: "a failure begins what comes after a success",
    file: "store/postgres/flow/following.ts",
    find: "f.ends in (e.outcome, ${followEnds.any})",
    put: "f.ends in (e.outcome, 2, 0)",
    breaks: "14",
  },
  {
    name: "a verdict without its fence",
    file: "store/postgres/claims/settle.ts",
    find: "`r.id = i.id and r.fence = i.fence and r.state + 0 = ${runState.claimed}`",
    put: "`r.id = i.id and r.state + 0 = ${runState.claimed}`",
    breaks: "8",
  },
  {
    name: "each verdict on a claim counts",
    file: "store/postgres/claims/claims.ts",
    find: "const { first: settlements, later } = firstOfEach(byNumber(given));",
    put: "const [settlements, later] = [byNumber(given), []];",
    // The simulation's workers report each verdict once; here they report it twice. In correct code the second verdict is recorded
    // as late and has no effect.
    also: {
      file: "worker/outbox.ts",
      find: "this.#waiting.push(settlement);",
      put: "this.#waiting.push(settlement, settlement);",
    },
    breaks: "1",
  },
  {
    name: "a retry without its fence",
    file: "store/postgres/claims/retries.ts",
    find: "from ${s}.run r join i on r.id = i.id and r.fence = i.fence join ${s}.plan p",
    put: "from ${s}.run r join i on r.id = i.id join ${s}.plan p",
    breaks: "12",
  },
  {
    name: "a fence that does not rise",
    file: "store/postgres/claims/claim.ts",
    find: "fence = nextval('${s}.fence'), attempt",
    put: "fence = coalesce(r.fence, nextval('${s}.fence')), attempt",
    also: {
      file: "store/postgres/claims/claims.ts",
      find: "runs.some(({ fence }) => fence <= before)",
      put: "runs.some(({ fence }) => fence < 0)",
    },
    breaks: "7",
  },
  {
    name: "an attempt that is not counted",
    file: "store/postgres/claims/claim.ts",
    find: "attempt = r.attempt + case when plan.paused then 0 else 1 end",
    put: "attempt = 1",
    breaks: "1",
  },
  {
    name: "no grace before claims are taken back",
    file: "store/postgres/claims/reclaim.ts",
    find: "(t.definition->>'graceMs')::bigint <= $2",
    put: "0 <= $2",
    breaks: "12",
    play: "doubt",
  },
  {
    name: "at most once runs again",
    file: "store/postgres/claims/reclaim.ts",
    find: "when t.definition->>'onWorkerLost' = 'retry'\n",
    put: "when t.definition->>'onWorkerLost' <> 'ask'\n",
    breaks: "12",
  },
  {
    name: "nobody is asked",
    file: "store/postgres/claims/reclaim.ts",
    find: "when t.definition->>'onWorkerLost' = 'ask' then 'ask'",
    put: "when t.definition->>'onWorkerLost' = 'ask' then 'retry'",
    breaks: "12",
  },
  {
    name: "what was claimed counts as not started",
    file: "store/postgres/claims/reclaim.ts",
    find: "when r.started_ms is null and r.due_ms > o.ended_ms then 'release'",
    put: "when true then 'release'",
    breaks: "12",
  },
  {
    name: "a retry in spite of a cancellation",
    file: "store/postgres/claims/retries.ts",
    find: "where r.state + 0 = ${runState.claimed} and r.recall <> ${runRecall.cancel} and t.deleted_ms is null and",
    put: "where r.state = 3 and",
    breaks: "14",
    play: "stops",
  },
  {
    name: "the reaper sleeps",
    file: "engine/reaper.ts",
    find: "if (!membership.trusted()) return;",
    put: "return;",
    breaks: "16",
  },
  {
    name: "a verdict that was applied is refused",
    file: "store/postgres/claims/refused.ts",
    find: "where exists (select from ${s}.run_history h where h.id = i.id",
    put: "where false and exists (select from ${s}.run_history h where h.id = i.id",
    breaks: "14",
  },
  {
    name: "a late verdict is not refused",
    file: "store/postgres/claims/refused.ts",
    find: "const late = missing.filter(({ fence }) => !settled.has(fence));",
    put: "const late = missing.filter(() => false);",
    breaks: "12",
  },
];
