import type { Mutant } from "./mutant.ts";

/** Bugs in sessions, their trust, and terms that `simulate --mutants` plants. */
export const membershipMutants: readonly Mutant[] = [
  {
    name: "trust outlives the session",
    file: "coordination/trust.ts",
    find: "const marginMs = 500;",
    put: "const marginMs = -3000;",
    breaks: "12",
    play: "doubt",
  },
  {
    name: "trust is counted from the answer",
    file: "coordination/membership.ts",
    find: "this.#trust.beaten(backing, began);",
    put: "this.#trust.beaten(backing, ended);",
    breaks: "12",
    play: "doubt",
  },
  {
    name: "a session is ended in spite of its beat",
    file: "store/postgres/cluster/sessions.ts",
    find: "and ($2::bigint is null or beat = $2) returning id",
    put: "and ($2::bigint is null or beat >= $2) returning id",
    breaks: "12",
    play: "doubt",
  },
  {
    name: "silence is judged too soon",
    file: "coordination/membership.ts",
    find: "if (silentMs < member.timeoutMs) continue;",
    put: "if (silentMs < member.timeoutMs / 2) continue;",
    breaks: "12",
  },
  {
    name: "a session that was ended goes on",
    file: "coordination/membership.ts",
    find: "if (!pulse.alive) return this.#rejoin();",
    put: "",
    breaks: "12",
  },
  {
    name: "shown again is alive again",
    file: "coordination/trust.ts",
    find: "provider.shownSince() <= this.#aliveAt",
    put: "true",
    breaks: "12",
    play: "shown",
  },
  {
    name: "the service's word ends before anyone asks the store",
    file: "coordination/membership.ts",
    find: 'if (!provider || this.#trust.told !== "provider") return;',
    put: "return;",
    breaks: "12",
    play: "coordination",
  },
  {
    name: "nobody stands for election",
    file: "coordination/membership.ts",
    find: "if (led && !provider?.first()) return;",
    put: "if (led || !provider?.first()) return;",
    breaks: "16",
  },
  {
    name: "a term is taken whoever has it",
    file: "store/postgres/cluster/leadership.ts",
    find: "where l.term = $3\n        and (l.session_id is null or $5 or exists",
    put: "where l.term >= $3\n        and (true or $5 or exists",
    breaks: "7",
  },
];
