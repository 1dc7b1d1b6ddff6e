import type { Mutant } from "./mutant.ts";

/** Bugs in the recovery after the store went back in time that `simulate --mutants` plants. */
export const recoveryMutants: readonly Mutant[] = (
  [
    {
      name: "enqueues are not remembered",
      file: "store/postgres/recovery/memory.ts",
      find: 'this.#add({ kind: "enqueued", writes, ids, atMs }, writes.length, bytes, monoMs);',
      put: "",
      breaks: "14",
    },
    {
      name: "enqueues are not put back",
      file: "store/postgres/recovery/recovery.ts",
      find: "...(await putEnqueues(client, s, enqueues)),",
      put: "",
      breaks: "14",
    },
    {
      name: "claims are not put back",
      file: "store/postgres/recovery/recovery.ts",
      find: ", ...(await putClaims(client, s, claims))",
      put: "",
      breaks: "1",
    },
    {
      name: "a claim that was found on the book is not remembered",
      file: "store/postgres/claims/claims.ts",
      find: "memory.booked(sessionId, runs, clock.monotonic());",
      put: "",
      breaks: "1",
    },
    {
      name: "a slot that is put back is not booked",
      file: "store/postgres/recovery/resubmit.ts",
      find: "from made where slot_ms is not null",
      put: "from made where false",
      breaks: "1",
    },
    {
      name: "results are not given back",
      file: "store/postgres/recovery/recovery.ts",
      find: "const settlements = this.#settlements();",
      put: "const settlements = [];",
      breaks: "16",
    },
    {
      name: "fences are not skipped",
      file: "store/postgres/recovery/skip.ts",
      find: "if (skipped > 0)",
      put: "if (false)",
      breaks: "7",
    },
    {
      name: "work goes on before all have told",
      file: "store/postgres/recovery/recovery.ts",
      find: "if (rows.some(({ waited }) => waited)) return false;",
      put: "",
      breaks: "1",
    },
    {
      name: "a store that was promoted refuses nothing",
      file: "store/postgres/migrations/0028-recovery.ts",
      find: "is not distinct from ${s}.log_timeline() and recovering_since_ms is null from ${s}.cluster) or current_setting",
      put: "is not distinct from ${s}.log_timeline() or true from ${s}.cluster) or current_setting",
      breaks: "1",
    },
    {
      name: "sessions are not put back",
      file: "store/postgres/recovery/resubmit.ts",
      find: "if (row || !identity) continue;",
      put: "continue;",
      breaks: "16",
    },
  ] satisfies Omit<Mutant, "play">[]
).map((mutant) => ({ ...mutant, play: "behind" }));
