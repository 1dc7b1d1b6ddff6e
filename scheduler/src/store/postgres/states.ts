import type { DeadLetter } from "../../run/dead-letters.ts";
import { type LiveState, liveStates, type Outcome, outcomes } from "../../run/run.ts";

const numbered = <Name extends string>(names: readonly Name[], first = 0) =>
  Object.fromEntries(names.map((name, at) => [name, first + at])) as Record<Name, number>;

/**
 * The numbers that tables store for states, by name. They are literals in the SQL texts, because partial indexes do not match parameters.
 */
/** The values of `run.state`. */
export const runState: Readonly<Record<LiveState, number>> = numbered(liveStates);
/** The values of `run.recall`: what the worker that has claimed the run is asked to do with it. */
export const runRecall = numbered(["none", "cancel", "withdraw"]);
/** The values of `run_history.outcome`. */
export const runOutcome: Readonly<Record<Outcome, number>> = numbered(outcomes);
/** The values of `slot.outcome` and `slot_range.outcome`. */
export const slotOutcome = numbered(["run", "skipped", "missed"], 1);

/** SQL condition on a row of `session`: it is alive and may receive runs. A draining session keeps only the runs that it has started. */
export const takesRuns = "ended_ms is null and not draining";

/** SQL condition on a row `r` of `run`: the run waits and has had no attempt. */
export const unbegun = `r.attempt = 0 and r.state in (${runState.held}, ${runState.paused}, ${runState.ready})`;

/** The states of dead letters, in the order of the numbers that tables store. */
export const letterStates = ["open", "redriven", "dismissed"] as const satisfies readonly DeadLetter["state"][];
/** The values of `dead_letter.state`. */
export const letterState: Readonly<Record<DeadLetter["state"], number>> = numbered(letterStates);
