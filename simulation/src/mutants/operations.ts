import type { Mutant } from "./mutant.ts";

/** Bugs in operations on many runs, and in backfills, that `simulate --mutants` plants. */
export const operationMutants: readonly Mutant[] = [
  {
    name: "a step leads nowhere",
    file: "store/postgres/runs/operation-steps.ts",
    find: "error = coalesce($5, error), cursor = $6, steps = steps + 1,\n              passed",
    put: "error = coalesce($5, error), cursor = case when steps = 0 then cursor else $6::jsonb end, steps = steps + 1, passed",
    breaks: "19",
    play: "operations",
  },
  {
    name: "two step an operation at once",
    file: "store/postgres/runs/operation-steps.ts",
    find: "order by stepped_ms, id limit 1 for update skip locked",
    put: "order by stepped_ms, id limit 1",
    breaks: "19",
    play: "operations",
  },
  {
    name: "a batch that is repeated counts twice",
    file: "store/postgres/runs/operation-steps.ts",
    find: "where id = $1 and steps = $2`, [ id,",
    put: "where id = $1 and $2::bigint > 0`, [id,",
    breaks: "19",
    play: "operations",
  },
  {
    name: "a batch whose process died is left",
    file: "store/postgres/runs/operation-steps.ts",
    find: "const batchTurnMs = 5_000;",
    put: "const batchTurnMs = 5e8;",
    breaks: "19",
    play: "operations",
  },
  {
    name: "a backfill counts what it passed over",
    file: "store/postgres/runs/backfill.ts",
    find: "done: made.length,",
    put: "done: slots.length,",
    breaks: "19",
    play: "operations",
  },
  {
    name: "a backfill leaves what was missed",
    file: "store/postgres/runs/backfill.ts",
    find: "and (outcome = ${slotOutcome.run} or not $4)) as told",
    put: "and (outcome >= 1 or not $4)) as told",
    breaks: "19",
    play: "operations",
  },
  {
    name: "a slot is caught up with and not linked",
    file: "store/postgres/runs/backfill.ts",
    find: "await link(client, s, task, made, now);",
    put: "await link(client, s, task, made.slice(1), now);",
    breaks: "19",
    play: "operations",
  },
  {
    name: "what is skipped at once has no slot",
    file: "store/postgres/runs/backfill.ts",
    find: 'runs.enqueueIn(client, write, now, "later")',
    put: "runs.enqueueIn(client, write, now)",
    breaks: "19",
    play: "operations",
  },
];
