/**
 * Follows the server's events while the page is seen, and makes old what they are about. A line that breaks off is opened again,
 * sooner at first, and one on which nothing is heard for longer than two of the server's beats counts as broken. What was missed
 * meanwhile the server tells by `resync`, its first word on every line: then all that is shown is asked for again.
 */
import { useSyncExternalStore } from "react";
import { answers, outdate } from "../api/answers.ts";
import { type Event, follow, isRefusal } from "../api/call.ts";

export type LineState = "live" | "connecting" | "broken" | "paused";

export interface Line {
  state: LineState;
  /** When it was last known to stand; null: never yet. */
  heardMs: number | null;
  /** When it is tried again. */
  againMs: number | null;
}

const silentMs = 40_000;
const waitsMs = [500, 1_000, 2_000, 4_000, 8_000, 15_000];
/** Ends come in bursts; what they make old is asked for once in so long. */
const gatherMs = 1_000;

let line: Line = { state: "connecting", heardMs: null, againMs: null };
const listeners = new Set<() => void>();
let over: AbortController | undefined;
let wake: () => void = () => undefined;

function become(change: Partial<Line>): void {
  line = { ...line, ...change };
  for (const listener of listeners) listener();
}

const gathered = new Set<string>();

function gather(...ids: Parameters<typeof outdate>): void {
  const isGathering = gathered.size > 0;
  for (const id of ids) gathered.add(id);
  if (isGathering) return;
  setTimeout(() => {
    const due = [...gathered] as Parameters<typeof outdate>;
    gathered.clear();
    outdate(...due);
  }, gatherMs);
}

function tell(event: Event<"followEvents">): void {
  switch (event.type) {
    case "resync":
      void answers.invalidateQueries();
      break;
    case "ended":
    case "more":
      gather(
        "listRuns",
        "getRun",
        "listRecentRuns",
        "listTasks",
        "getTask",
        "listDeadGroups",
        "listDeadLetters",
        "listSlots",
      );
      break;
    case "tasks":
      gather(
        "listTasks",
        "getTask",
        "listComing",
        "listUpcomingSlots",
        "listTaskVersions",
        "listCalendars",
        "getCalendar",
        "listAudit",
      );
      break;
    case "operations":
      gather("listOperations", "getOperation", "listAudit");
      break;
    case "leadership":
      gather("getCluster", "listNodes", "listTerms", "listWorkers");
  }
}

const pause = (ms: number, signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, ms);
    wake = () => {
      clearTimeout(timer);
      resolve();
    };
    signal.addEventListener("abort", wake, { once: true });
  });

async function stand(signal: AbortSignal): Promise<void> {
  for (let failures = 0; !signal.aborted; ) {
    const attempt = new AbortController();
    const end = () => attempt.abort();
    signal.addEventListener("abort", end, { once: true });
    let silence: ReturnType<typeof setTimeout> | undefined;
    const heard = () => {
      clearTimeout(silence);
      silence = setTimeout(end, silentMs);
      failures = 0;
      if (line.state !== "live") become({ state: "live", heardMs: Date.now(), againMs: null });
      else line = { ...line, heardMs: Date.now() };
    };
    try {
      silence = setTimeout(end, silentMs);
      await follow("followEvents", {}, tell, { signal: attempt.signal, heard });
    } catch (error) {
      // Told by the line's state. Whoever is signed in no more learns it from the next answer.
      if (isRefusal(error, "SIGN_IN_NEEDED")) outdate("getMe");
    }
    clearTimeout(silence);
    signal.removeEventListener("abort", end);
    if (signal.aborted) return;
    const waitMs = waitsMs[Math.min(failures++, waitsMs.length - 1)] as number;
    become({ state: "broken", againMs: Date.now() + waitMs });
    await pause(waitMs, signal);
    if (!signal.aborted) become({ againMs: null });
  }
}

function onVisibility(): void {
  over?.abort();
  if (document.hidden) {
    become({ state: "paused", againMs: null });
    return;
  }
  over = new AbortController();
  if (line.state === "paused") become({ state: "connecting" });
  void stand(over.signal);
}

/** @returns what ends it */
export function startLine(): () => void {
  document.addEventListener("visibilitychange", onVisibility);
  onVisibility();
  return () => {
    document.removeEventListener("visibilitychange", onVisibility);
    over?.abort();
    line = { state: "connecting", heardMs: null, againMs: null };
  };
}

export const tryNow = (): void => wake();

const subscribe = (listener: () => void) => {
  listeners.add(listener);
  return () => listeners.delete(listener);
};
export const useLine = (): Line => useSyncExternalStore(subscribe, () => line);
