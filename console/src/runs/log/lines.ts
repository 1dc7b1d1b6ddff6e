/**
 * Loads a contiguous part of a run's log: from its start, from its end, or around a line. More lines are loaded in both directions as
 * the user scrolls, and the farthest lines in the other direction are dropped. If the loaded part reaches the end of the log, new lines of
 * a live run are appended.
 */
import { useCallback, useEffect, useRef, useState } from "react";
import { call, type Given } from "../../api/call.ts";
import { nowMs } from "../../now.ts";
import { askedOf, type LogLine, type Only } from "./levels.ts";
import { followed, type Loaded, preceded } from "./loaded.ts";
import { tailLog } from "./tail.ts";

export interface LogLines {
  lines: LogLine[];
  error: unknown;
  /** True if the log has lines before (`before`) or after (`after`) the loaded lines. */
  before: boolean;
  after: boolean;
  reading: boolean;
  grow: (way: "before" | "after") => void;
  jump: (to: "start" | "end" | LogLine) => void;
  again: () => void;
}

interface Tail {
  after: string;
}

interface Read {
  change: (before: Loaded) => Loaded;
  tail: Tail | null;
}

const pageSize = 500;

/** A worker sends lines in batches, so a run's last lines may arrive for this long after its end. */
const lastLinesMs = 60_000;

const nothing: Loaded = { lines: [], before: false, after: false };

/** @param state `live`: the run goes on; `ended`: when it ended, in ISO form */
export function useLogLines(run: number, state: { live: boolean; ended: string | null }, only: Only): LogLines {
  const { least, attempt } = only;
  const [window, setWindow] = useState<Loaded>(nothing);
  const [error, setError] = useState<unknown>();
  /** The error that interrupted the stream of new lines. The stream is opened again automatically. */
  const [broken, setBroken] = useState<unknown>();
  const [reading, setReading] = useState(true);
  /**
   * The cursor after which new lines are streamed; null if the loaded lines do not reach the log's end, or if the run ended too long
   * ago for new lines.
   */
  const [tail, setTail] = useState<Tail | null>(null);
  // `opensAt` and `follows` do not change when the run ends while the log is open: the stream of new lines ends by itself.
  const [opensAt] = useState<"start" | "end">(state.live ? "end" : "start");
  const [follows] = useState(
    () => state.live || (state.ended !== null && nowMs() - Date.parse(state.ended) < lastLinesMs),
  );
  /** The number of loads so far: the answer of a load is discarded if another load has begun since. */
  const turn = useRef(0);

  const ask = useCallback(
    async (order: "oldest" | "newest", beside?: string) => {
      const given: Given<"listLogs"> = { run, limit: pageSize, order, ...askedOf({ least, attempt }) };
      if (beside !== undefined) given.beside = beside;
      const { items, next, tail } = await call("listLogs", given);
      return { lines: order === "newest" ? items.toReversed() : items, more: next !== null, tail };
    },
    [run, least, attempt],
  );

  const take = useCallback(async (read: () => Promise<Read>) => {
    const mine = ++turn.current;
    setReading(true);
    try {
      const { change, tail } = await read();
      if (mine !== turn.current) return;
      setWindow(change);
      if (tail) setTail(tail);
      setError(undefined);
    } catch (refused) {
      if (mine === turn.current) setError(refused);
    }
    if (mine === turn.current) setReading(false);
  }, []);

  const jump = useCallback(
    (to: "start" | "end" | LogLine) => {
      setTail(null);
      void take(async () => {
        const [earlier, later] = await Promise.all([
          to === "start" ? null : ask("newest", to === "end" ? undefined : to.id),
          to === "end" ? null : ask("oldest", to === "start" ? undefined : to.id),
        ]);
        const lines = [...(earlier?.lines ?? []), ...(typeof to === "object" ? [to] : []), ...(later?.lines ?? [])];
        const after = (later ?? earlier)?.tail;
        return {
          change: () => ({ lines, before: earlier?.more ?? false, after: later?.more ?? false }),
          tail: follows && after !== undefined && !later?.more ? { after } : null,
        };
      });
    },
    [ask, take, follows],
  );
  useEffect(() => jump(opensAt), [jump, opensAt]);

  const { lines } = window;
  const [first, last] = [lines[0]?.id, lines.at(-1)?.id];
  const grow = (way: "before" | "after") =>
    void take(async () => {
      const page = way === "before" ? await ask("newest", first) : await ask("oldest", last);
      return {
        change: (window) =>
          way === "before" ? preceded(window, page.lines, page.more) : followed(window, page.lines, page.more),
        tail: follows && way === "after" && !page.more ? { after: page.tail } : null,
      };
    });

  const { before, after } = window;
  useEffect(() => {
    if (!tail || after) return;
    return tailLog({
      run,
      only: { least, attempt },
      after: tail.after,
      onLines: (added) =>
        // If the last lines were dropped, the new lines are ignored: the stream closes only after the next rendering.
        setWindow((window) => (window.after ? window : followed(window, added, false))),
      onRefused: setError,
      onBroken: setBroken,
    });
  }, [run, least, attempt, tail, after]);

  const again = () => {
    setError(undefined);
    jump(opensAt);
  };
  return { lines, error: error ?? broken, before, after, reading, grow, jump, again };
}
