/**
 * Follows the server's event stream while the page is visible, and invalidates the cached answers that an event may have changed.
 * Each connection begins with the event `resync`, which invalidates all answers, because events may have been missed before it.
 */
import { useSyncExternalStore } from "react";
import { answers, outdate } from "../api/answers.ts";
import { type Event, follow, isRefusal } from "../api/call.ts";
import { useReads } from "../api/reads.ts";
import { type Attempt, stand, whileSeen } from "./standing.ts";

export type LineState = "live" | "connecting" | "broken" | "paused";

export interface Line {
  state: LineState;
  /** Epoch ms at which bytes last arrived on the event stream; null if none ever arrived. */
  heardMs: number | null;
  /** Epoch ms at which the next attempt begins; null while none is planned. */
  againMs: number | null;
}

/** Events within this time in ms are collected, and each affected answer is invalidated once, because runs often end in bursts. */
const gatherMs = 1_000;

let line: Line = { state: "connecting", heardMs: null, againMs: null };
const listeners = new Set<() => void>();

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
        "getRunFamily",
        "listRecentRuns",
        "listTasks",
        "getTask",
        "listDeadGroups",
        "listErrors",
        "listDeadLetters",
        "listSlots",
      );
      break;
    case "tasks":
      gather(
        "listTasks",
        "listFlow",
        "getTask",
        "listComing",
        "listUpcomingSlots",
        "listTaskVersions",
        "listCalendars",
        "getCalendar",
        "listAudit",
        "explainRun",
        "explainRuns",
      );
      break;
    case "operations":
      gather("listOperations", "getOperation", "listAudit");
      break;
    case "leadership":
      gather("getCluster", "listNodes", "listTerms", "listWorkers");
  }
}

async function open({ signal, heard }: Attempt): Promise<boolean> {
  if (line.againMs !== null) become({ againMs: null });
  await follow("followEvents", {}, tell, {
    signal,
    heard: () => {
      heard();
      if (line.state !== "live") become({ state: "live", heardMs: Date.now(), againMs: null });
      else line = { ...line, heardMs: Date.now() };
    },
  });
  return false;
}

function onBroken(error: unknown, waitMs: number): void {
  // The state `broken` shows the error. If the sign-in has ended, fetching `getMe` again makes the page ask for a sign-in.
  if (isRefusal(error, "SIGN_IN_NEEDED")) outdate("getMe");
  become({ state: "broken", againMs: Date.now() + waitMs });
}

/** Starts following the events. @returns a function that stops it */
export function startLine(): () => void {
  const end = whileSeen(
    (signal) => {
      if (line.state === "paused") become({ state: "connecting" });
      void stand(open, signal, onBroken);
    },
    () => become({ state: "paused", againMs: null }),
  );
  return () => {
    end();
    line = { state: "connecting", heardMs: null, againMs: null };
  };
}

const subscribe = (listener: () => void) => {
  listeners.add(listener);
  return () => listeners.delete(listener);
};
export const useLine = (): Line => useSyncExternalStore(subscribe, () => line);

/** The state of the connection; `slow` or `failed` if the stream is open but the server does not answer reads. */
export type Standing = LineState | "slow" | "failed";

/**
 * @returns the state, and in `sinceMs` the epoch ms up to which the data on the page was known to be current. `sinceMs` is null if
 * the data is current now, if that time is unknown, or in the state `paused`.
 */
export function useStanding(): { state: Standing; sinceMs: number | null } {
  const { state, heardMs } = useLine();
  const reads = useReads();
  if (state === "broken") return { state, sinceMs: heardMs };
  if (state !== "paused" && reads.state !== "answered") return { state: reads.state, sinceMs: reads.sinceMs };
  return { state, sinceMs: null };
}

export const isConfirmed = (state: Standing): boolean => !["broken", "slow", "failed"].includes(state);
