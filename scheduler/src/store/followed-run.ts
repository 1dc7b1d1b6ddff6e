import { type Clock, pause } from "../base/clock.ts";
import { type Outcome, outcomes } from "../run/run.ts";
import type { RunRecord } from "../run/run-record.ts";
import type { LogRead, PlacedLine } from "./browse-store.ts";
import type { Store } from "./store.ts";

const lookMs = 500;
const linesPerLook = 1_000;
/** A run's last log lines may arrive this time (ms) after its end, because workers send lines in batches. */
const lastLinesMs = 1_000;
/** If a run ended longer ago than this (ms), all of its lines are taken to have arrived, even if clocks differ. */
const endedLongAgoMs = 60_000;

export const isEnd = (state: string): state is Outcome => (outcomes as readonly string[]).includes(state);

export type Followed =
  /** A log line. `read` is the position after it, from which a later reader can continue. */
  | { line: PlacedLine; read: LogRead }
  /**
   * The state of the run at one poll. It comes before the lines that arrived since the last poll; for a run that has ended, it comes after
   * all lines as the last item.
   */
  | { run: RunRecord };

/**
 * Follows a run until its end. Lines come in the order in which they arrive in the store, which may differ from the order of their times.
 * Each poll returns the lines that earlier polls could not see.
 * @param first the run's current record
 * @param from how much of the log was read before
 */
export async function* followed(
  { store, clock }: { store: Pick<Store, "browse" | "runs">; clock: Clock },
  first: RunRecord,
  from: LogRead,
  signal: AbortSignal,
): AsyncGenerator<Followed> {
  let [run, { seen, reading, place }] = [first, from];
  /** True if an earlier reader stopped in the middle of a snapshot. A later snapshot must then be read as well. */
  let resumed = reading !== null;
  let waited = false;
  while (!signal.aborted) {
    // The end is determined before the log is read, so that no line of an ended run is missed.
    const ended = isEnd(run.state);
    if (!ended) yield { run };
    for (let whole = false; !whole; ) {
      const found = await store.browse.arrived(run.runId, { seen, reading, place }, linesPerLook);
      ({ reading } = found);
      for (const line of found.lines) {
        place = { atMs: line.atMs, lies: line.lies };
        yield { line, read: { seen, reading, place } };
      }
      whole = found.lines.length < linesPerLook;
    }
    [seen, reading, place] = [reading, null, null];
    if (resumed) {
      resumed = false;
      continue;
    }
    if (ended && (waited || clock.wall() - (run.endedMs ?? 0) > endedLongAgoMs)) {
      yield { run };
      return;
    }
    await pause(clock, ended ? lastLinesMs : lookMs, signal);
    waited = ended;
    if (!ended && !signal.aborted) run = await store.runs.find(run.runId);
  }
}
