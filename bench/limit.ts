/**
 * How many bare statements of a run's life does the server execute: insert, claim, complete?
 *
 *   npm run bench -- limit           three runs of 100,000 rows
 *   … --runs N, --count N, --quick, --json
 *
 * This is the limit in the ratios of other questions; see limit/raw-life.ts. `insert_per_s`, `claim_per_s`, `complete_per_s`; `per_s` is
 * claim and complete together, `_no_history` with rows that are deleted once they have ended.
 */
import { variable } from "./contest/arena.ts";
import { contest } from "./contest/contest.ts";
import { rawLife } from "./limit/raw-life.ts";

await contest({
  name: "limit",
  sizes: { count: { usual: 100_000, quick: 4_000 } },
  who: [],
  limit: ({ count }) => rawLife(variable("CARILLON_BENCH_POSTGRES_URL"), count),
  measure: async () => ({}),
});
