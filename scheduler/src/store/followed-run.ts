import { type Clock, pause } from "../base/clock.ts";
import { type Outcome, outcomes } from "../run/run.ts";
import type { RunRecord } from "../run/run-record.ts";
import type { LogRead, PlacedLine } from "./browse-store.ts";
import type { Store } from "./store.ts";

const lookMs = 500;
const linesPerLook = 1_000;
/** A worker sends lines in batches, so a run's last lines may arrive this long after its end. */
const lastLinesMs = 1_000;
/** If a run ended longer ago than this, by any machine's clock, all its lines have arrived. */
const endedLongAgoMs = 60_000;

export const isEnd = (state: string): state is Outcome => (outcomes as readonly string[]).includes(state);

export type Followed =
  /** `read`: the position after this line, from which reading can resume. */
  | { line: PlacedLine; read: LogRead }
  /**
   * The run's state at a look, sent before the lines that arrived since the last look; an ended run is sent after its lines, as the last
   * item.
   */
  | { run: RunRecord };

/**
 * Follows a run until its end. Lines come in the order in which they arrive in the store, which is not the order of their times. Each look
 * returns the lines that no earlier look could see, and resumes where the last look stopped.
 * @param first the run as it is now
 * @param from how much was read before
 */
export async function* followed(
  { store, clock }: { store: Pick<Store, "browse" | "runs">; clock: Clock },
  first: RunRecord,
  from: LogRead,
  signal: AbortSignal,
): AsyncGenerator<Followed> {
  let [run, { seen, reading, place }] = [first, from];
  /** If the earlier reader stopped while it read a snapshot, there is a later snapshot to read. */
  let resumed = reading !== null;
  let waited = false;
  while (!signal.aborted) {
    // Determined before the log is read, so that no line of an ended run is missed.
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
