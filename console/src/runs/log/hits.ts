/** Searches a log: the lines that contain a text, and which of these lines is selected. */
import { useDebouncedValue } from "@mantine/hooks";
import { useEffect, useMemo, useRef, useState } from "react";
import { usePages } from "../../parts/table/pages.ts";
import { askedOf, type LogLine, type Only } from "./levels.ts";
import { textOf } from "./text.ts";

const foundAtOnce = 500;

interface Search {
  run: number;
  live: boolean;
  only: Only;
  find: string;
  /** The lines that are loaded. */
  lines: LogLine[];
  /** True if the loaded lines are the whole log. */
  isWhole: boolean;
}

export interface Hits {
  hit: LogLine | undefined;
  /** The number of the selected hit, from 1; 0 if there is none. */
  place: number;
  count: number;
  /** True if the server has more matching lines than `count`. */
  more: boolean;
  isLooking: boolean;
  /** Selects the next hit (1) or the previous one (-1). */
  go: (step: number) => void;
  restart: () => void;
}

/** @param to scrolls to a line; called when another matching line is selected */
export function useHits(search: Search, to: (line: LogLine) => void): Hits {
  const [at, setAt] = useState(0);
  const found = useFound(search);
  const hit = found.hits[Math.min(at, found.hits.length - 1)];
  const goTo = useRef(to);
  goTo.current = to;
  const hitId = hit?.id;
  // biome-ignore lint/correctness/useExhaustiveDependencies: scrolls when another hit is selected, not when more hits are loaded.
  useEffect(() => {
    if (hit) goTo.current(hit);
  }, [hitId]);
  const go = (step: number) => {
    const { hits, more, onMore } = found;
    if (hits.length === 0) return;
    const next = Math.min(at, hits.length - 1) + step;
    if (next >= hits.length && more) {
      // The index is beyond the loaded hits; the next hit is selected as soon as it is loaded.
      onMore();
      return setAt(next);
    }
    setAt((next + hits.length) % hits.length);
    if (hits.length === 1 && hits[0]) to(hits[0]);
  };
  return {
    hit,
    place: hit ? found.hits.indexOf(hit) + 1 : 0,
    count: found.hits.length,
    more: found.more,
    isLooking: found.isLooking,
    go,
    restart: () => setAt(0),
  };
}

/** Searches the loaded lines if they are the whole log; otherwise the server searches. */
function useFound({ run, live, only, find, lines, isWhole }: Search) {
  const [settled] = useDebouncedValue(find.trim(), 200);
  const asks = settled !== "" && lines.length > 0 && !isWhole;
  const given = { run, find: settled || " ", limit: foundAtOnce, ...askedOf(only) };
  const asked = usePages("listLogs", given, { enabled: asks, ...(live ? { everyMs: 5_000 } : {}) });
  const here = useMemo(() => {
    const wanted = find.trim().toLowerCase();
    return wanted === "" || !isWhole ? [] : lines.filter((line) => textOf(line).toLowerCase().includes(wanted));
  }, [lines, find, isWhole]);
  if (!asks)
    return { hits: here, more: false, onMore: () => undefined, isLooking: find.trim() !== settled && !isWhole };
  const isLooking = asked.data === undefined || asked.stale;
  return { hits: isLooking ? [] : (asked.data ?? []), more: asked.more, onMore: asked.onMore, isLooking };
}
