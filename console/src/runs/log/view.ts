import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useLayoutEffect, useRef, useState } from "react";
import { useOverscan } from "../../parts/table/printing.ts";
import type { LogLine } from "./levels.ts";
import type { LogLines } from "./lines.ts";

const lineHeight = 22;
/** The next page is loaded when the lines in the DOM come within this many lines of the first or last loaded line. */
const nearEdge = 150;

export type View = ReturnType<typeof useView>;

/** Controls the scrolling of a log: loads lines near an edge, scrolls to a line, and follows the end of a live log. */
export function useView({ lines, before, after, reading, error, grow, jump }: LogLines, live: boolean) {
  const [follows, setFollows] = useState(live);
  const place = useRef<HTMLDivElement>(null);
  const overscan = useOverscan(20);
  const virtual = useVirtualizer({
    count: lines.length,
    getScrollElement: () => place.current,
    estimateSize: () => lineHeight,
    overscan,
    getItemKey: (index) => lines[index]?.id ?? index,
  });
  const items = virtual.getVirtualItems();
  const [first, last] = [items[0]?.index ?? 0, items.at(-1)?.index ?? 0];
  useEffect(() => {
    if (reading || lines.length === 0 || error !== undefined) return;
    if (after && last >= lines.length - nearEdge) grow("after");
    else if (before && first < nearEdge) grow("before");
  }, [reading, error, after, before, first, last, lines.length, grow]);
  // When lines are added or dropped above the visible lines, the scroll position is corrected so that the visible lines do not move.
  const shown = useRef<LogLine[]>([]);
  useLayoutEffect(() => {
    const known = shown.current;
    shown.current = lines;
    const [was, is] = [known[0]?.id, lines[0]?.id];
    if (!place.current || was === undefined || is === undefined || was === is) return;
    const came = lines.findIndex(({ id }) => id === was);
    const went = came > 0 ? 0 : known.findIndex(({ id }) => id === is);
    if (came > 0 || went > 0) place.current.scrollTop += (Math.max(0, came) - Math.max(0, went)) * lineHeight;
  }, [lines]);
  useEffect(() => {
    if (follows && lines.length > 0) virtual.scrollToIndex(lines.length - 1, { align: "end" });
  }, [follows, lines.length, virtual]);
  /** The requested position, until its lines have been read. */
  const [wanted, setWanted] = useState<"start" | "end" | string>();
  const to = (target: "start" | "end" | LogLine) => {
    const id = typeof target === "object" ? target.id : target;
    setWanted(id);
    const isThere = id === "start" ? !before : id === "end" ? !after : lines.some((line) => line.id === id);
    if (!isThere) jump(target);
    setFollows(live && id === "end");
  };
  useEffect(() => {
    if (wanted === undefined || reading || lines.length === 0) return;
    const index =
      wanted === "start" ? 0 : wanted === "end" ? lines.length - 1 : lines.findIndex(({ id }) => id === wanted);
    if (index >= 0)
      virtual.scrollToIndex(index, { align: wanted === "start" ? "start" : wanted === "end" ? "end" : "center" });
    setWanted(undefined);
  }, [wanted, reading, lines, virtual]);
  const onScroll = () => {
    const element = place.current;
    // Scrolling up stops following; returning to the end starts it again.
    if (element && live && !after)
      setFollows(element.scrollHeight - element.scrollTop - element.clientHeight < lineHeight * 2);
  };
  return { place, virtual, items, follows, setFollows, to, onScroll };
}
