/**
 * At what rate does the server execute the bare statements that a run needs: insert, claim, complete?
 *
 *   npm run bench -- limit           three runs of 100,000 rows
 *   … --runs N, --count N, --quick, --json
 *
 * This is the limit to which other benches compare their rates; see limit/raw-life.ts. Figures: `insert_per_s`, `claim_per_s`,
 * `complete_per_s`; `per_s` is the rate of claim and complete together; `_no_history` deletes rows when they are completed.
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
