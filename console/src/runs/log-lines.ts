/** A run's log as it is read: page after page where it is over, as it is written where it is not. */
import { useCallback, useEffect, useRef, useState } from "react";
import { type Answer, call, follow } from "../api/call.ts";

export type LogLine = Answer<"listLogs">["items"][number];

export interface LogLines {
  lines: LogLine[];
  error: unknown;
  /** There are lines that were not read yet. */
  more: boolean;
  reading: boolean;
  /** Lines that had to make room. */
  dropped: number;
  read: () => void;
  again: () => void;
}

const pageSize = 1_000;
/** More than this no page should hold; of a log that goes on, the oldest go. */
const keptMost = 250_000;
const gatherMs = 120;

export function useLogLines(run: number, live: boolean): LogLines {
  const [lines, setLines] = useState<LogLine[]>([]);
  const [error, setError] = useState<unknown>();
  const [dropped, setDropped] = useState(0);
  const [reading, setReading] = useState(true);
  const [attempt, setAttempt] = useState(0);
  const cursor = useRef<string | null | undefined>(undefined);
  const last = useRef<string | undefined>(undefined);
  const [more, setMore] = useState(false);
  // A run that ends while one looks goes on as it began: its stream ends by itself.
  const [follows] = useState(live);

  const put = useCallback((added: LogLine[]) => {
    last.current = added.at(-1)?.id ?? last.current;
    setLines((before) => {
      const all = [...before, ...added];
      const over = all.length - keptMost;
      if (over <= 0) return all;
      setDropped((count) => count + over);
      return all.slice(over);
    });
  }, []);

  const read = useCallback(async () => {
    if (cursor.current === null) return;
    setReading(true);
    try {
      const from = cursor.current;
      const page = await call("listLogs", { run, limit: pageSize, ...(from === undefined ? {} : { cursor: from }) });
      if (cursor.current !== from) return;
      cursor.current = page.next;
      setMore(page.next !== null);
      setError(undefined);
      put(page.items);
    } catch (refused) {
      setError(refused);
    } finally {
      setReading(false);
    }
  }, [run, put]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: another attempt begins again.
  useEffect(() => {
    if (!follows) {
      void read();
      return;
    }
    const over = new AbortController();
    let waiting: LogLine[] = [];
    const flush = setInterval(() => {
      if (waiting.length === 0) return;
      put(waiting);
      waiting = [];
    }, gatherMs);
    const tell = (event: { type: string; line?: LogLine }) => {
      setReading(false);
      if (event.line) waiting.push(event.line);
    };
    const quiet = setTimeout(() => setReading(false), 1_000);
    follow("tailLogs", { run, ...(last.current ? { after: last.current } : {}) }, tell, { signal: over.signal }).then(
      () => setReading(false),
      (broken: unknown) => {
        if (!over.signal.aborted) setError(broken);
      },
    );
    return () => {
      over.abort();
      clearInterval(flush);
      clearTimeout(quiet);
    };
  }, [run, follows, attempt, put]);

  const again = () => {
    setError(undefined);
    setAttempt((count) => count + 1);
    if (!follows) void read();
  };
  return { lines, error, more, reading, dropped, read: () => void read(), again };
}
