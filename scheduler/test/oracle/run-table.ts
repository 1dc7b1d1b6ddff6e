import { type LiveState, liveStates, type RunState } from "../../src/run/run.ts";

/**
 * The events of a run. `transitions` has the next state for each; docs/reference/states.md shows the table, and tests check the store
 * against it.
 */
export const runEvents = [
  "admit",
  "demote",
  "claim",
  "release",
  "succeed",
  "retry",
  "fail",
  "lose: retry",
  "lose: fail",
  "lose: ask",
  "decide: retry",
  "decide: fail",
  "cancel",
  "cancel confirmed",
  "skip",
  "expire",
  "withdraw",
  "pause",
  "resume",
] as const;
export type RunEvent = (typeof runEvents)[number];

/** The next state for each live state and event; undefined if the store refuses the event and changes nothing. */
const transitions: Record<LiveState, Partial<Record<RunEvent, RunState>>> = {
  held: { admit: "ready", cancel: "cancelled", skip: "skipped", withdraw: "withdrawn", pause: "paused" },
  paused: { cancel: "cancelled", resume: "ready" },
  ready: {
    demote: "held",
    claim: "claimed",
    cancel: "cancelled",
    expire: "skipped",
    withdraw: "withdrawn",
    pause: "paused",
  },
  claimed: {
    release: "ready",
    succeed: "succeeded",
    retry: "ready",
    fail: "failed",
    "lose: retry": "ready",
    "lose: fail": "failed",
    "lose: ask": "undecided",
    // A cancel only asks the worker to stop: the run stays claimed until the worker confirms or is lost.
    cancel: "claimed",
    withdraw: "claimed",
    "cancel confirmed": "cancelled",
  },
  undecided: { "decide: retry": "ready", "decide: fail": "failed", cancel: "cancelled" },
};

const isLive = (state: RunState): state is LiveState => (liveStates as readonly RunState[]).includes(state);

export const runTransition = (state: RunState, event: RunEvent): RunState | undefined =>
  isLive(state) ? transitions[state][event] : undefined;
