import type { Mutant } from "./mutant.ts";

/** Of claims, verdicts and what takes claims back. */
export const claimMutants: readonly Mutant[] = [
  {
    name: "a verdict without its fence",
    file: "store/settle.ts",
    find: "where r.id = i.id and r.fence = i.fence and r.state + 0 = 3",
    put: "where r.id = i.id and r.state + 0 = 3",
    breaks: "8",
  },
  {
    name: "a retry without its fence",
    file: "store/settle.ts",
    find: "from ${s}.run r join i on r.id = i.id and r.fence = i.fence join ${s}.plan p",
    put: "from ${s}.run r join i on r.id = i.id join ${s}.plan p",
    breaks: "12",
  },
  {
    name: "a fence that does not rise",
    file: "store/claims.ts",
    find: "fence = nextval('${s}.fence'), attempt",
    put: "fence = coalesce(r.fence, nextval('${s}.fence')), attempt",
    breaks: "7",
  },
  {
    name: "an attempt that is not counted",
    file: "store/claims.ts",
    find: "attempt = r.attempt + case when plan.paused then 0 else 1 end",
    put: "attempt = 1",
    breaks: "1",
  },
  {
    name: "no grace before claims are taken back",
    file: "store/claims.ts",
    find: "(t.definition->>'graceMs')::bigint <= $2",
    put: "0 <= $2",
    breaks: "12",
  },
  {
    name: "at most once runs again",
    file: "store/claims.ts",
    find: "when t.definition->>'onWorkerLost' = 'retry'\n",
    put: "when t.definition->>'onWorkerLost' <> 'ask'\n",
    breaks: "12",
  },
  {
    name: "nobody is asked",
    file: "store/claims.ts",
    find: "when t.definition->>'onWorkerLost' = 'ask' then 'ask'",
    put: "when t.definition->>'onWorkerLost' = 'ask' then 'retry'",
    breaks: "12",
  },
  {
    name: "what was claimed counts as not started",
    file: "store/claims.ts",
    find: "when r.started_ms is null and r.due_ms > o.ended_ms then 'release'",
    put: "when true then 'release'",
    breaks: "12",
  },
  {
    name: "a retry in spite of a cancellation",
    file: "store/settle.ts",
    find: "where r.state + 0 = 3 and r.recall <> 1 and t.deleted_ms is null and",
    put: "where r.state = 3 and",
    breaks: "14",
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
    file: "store/settle.ts",
    find: "where exists (select from ${s}.run_history h where h.id = i.id",
    put: "where false and exists (select from ${s}.run_history h where h.id = i.id",
    breaks: "14",
  },
  {
    name: "a late verdict is not refused",
    file: "store/claims.ts",
    find: "const late = missing.filter(({ fence }) => !settled.has(fence));",
    put: "const late = missing.filter(() => false);",
    breaks: "12",
  },
];
