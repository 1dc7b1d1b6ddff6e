import type { DeadLetter } from "../../run/dead-letters.ts";
import { type LiveState, liveStates, type Outcome, outcomes } from "../../run/run.ts";

const numbered = <Name extends string>(names: readonly Name[], first = 0) =>
  Object.fromEntries(names.map((name, at) => [name, first + at])) as Record<Name, number>;

/**
 * The numbers by which tables store states, by name, for SQL texts. Partial indexes need the number in the statement itself, so these
 * numbers are never parameters.
 */
/** The values of `run.state`. */
export const runState: Readonly<Record<LiveState, number>> = numbered(liveStates);
/** `run.recall`: what the worker that claimed the run is asked to do with it. */
export const runRecall = numbered(["none", "cancel", "withdraw"]);
/** The values of `run_history.outcome`. */
export const runOutcome: Readonly<Record<Outcome, number>> = numbered(outcomes);
/** The values of `slot.outcome` and `slot_range.outcome`. */
export const slotOutcome = numbered(["run", "skipped", "missed"], 1);

/** A condition on a row of `session`: the session is alive and may be given runs. A draining session keeps the runs that it has started. */
export const takesRuns = "ended_ms is null and not draining";

/** A condition on a row `r` of `run`: the run waits and has not had a try. */
export const unbegun = `r.attempt = 0 and r.state in (${runState.held}, ${runState.paused}, ${runState.ready})`;

/** In the order of the numbers that tables store. */
export const letterStates = ["open", "redriven", "dismissed"] as const satisfies readonly DeadLetter["state"][];
/** The values of `dead_letter.state`. */
export const letterState: Readonly<Record<DeadLetter["state"], number>> = numbered(letterStates);
