/**
 * The states of a claim in its worker. (A claim is a numbered, time-limited right to one attempt.) `waiting`: claimed, but not due yet, or
 * without a free slot. `running`: the handler runs. `ending`: the handler was asked to stop and has not returned. `settling`: the verdict
 * is being sent to the store. `gone`: the store has the verdict, or the claim no longer belongs to this worker.
 */
export const claimStates = ["waiting", "running", "ending", "settling", "gone"] as const;
export type ClaimState = (typeof claimStates)[number];

export const claimEvents = [
  "due",
  "returned",
  "threw",
  "timeout",
  "cancel",
  "withdraw",
  "give back",
  "session lost",
  "acknowledged",
  "refused",
] as const;
export type ClaimEvent = (typeof claimEvents)[number];

/** What the worker does in a state transition; at most one action each. */
export type ClaimAct = "start" | "abort" | "report" | "report cancelled" | "report released" | "keep" | "drop" | "none";

type Step = readonly [ClaimState, ClaimAct];

/**
 * The state transitions. Each event has an entry in each state, even if nothing happens. A withdrawal does not stop an attempt that has
 * started (`keep` reports the start to the store). When the session is lost, claims that have not started are dropped and running attempts
 * are aborted; the store then refuses their late verdicts.
 */
export const claimTable: Record<ClaimState, Record<ClaimEvent, Step>> = {
  waiting: {
    due: ["running", "start"],
    returned: ["waiting", "none"],
    threw: ["waiting", "none"],
    timeout: ["waiting", "none"],
    cancel: ["settling", "report cancelled"],
    withdraw: ["settling", "report released"],
    "give back": ["settling", "report released"],
    "session lost": ["gone", "drop"],
    acknowledged: ["waiting", "none"],
    refused: ["gone", "drop"],
  },
  running: {
    due: ["running", "none"],
    returned: ["settling", "report"],
    threw: ["settling", "report"],
    timeout: ["ending", "abort"],
    cancel: ["ending", "abort"],
    withdraw: ["running", "keep"],
    "give back": ["running", "none"],
    "session lost": ["ending", "abort"],
    acknowledged: ["running", "none"],
    refused: ["ending", "abort"],
  },
  ending: {
    due: ["ending", "none"],
    returned: ["settling", "report"],
    threw: ["settling", "report"],
    timeout: ["ending", "none"],
    cancel: ["ending", "none"],
    withdraw: ["ending", "none"],
    "give back": ["ending", "none"],
    "session lost": ["ending", "none"],
    acknowledged: ["ending", "none"],
    refused: ["ending", "none"],
  },
  settling: {
    due: ["settling", "none"],
    returned: ["settling", "none"],
    threw: ["settling", "none"],
    timeout: ["settling", "none"],
    cancel: ["settling", "none"],
    withdraw: ["settling", "none"],
    "give back": ["settling", "none"],
    "session lost": ["settling", "none"],
    acknowledged: ["gone", "drop"],
    refused: ["gone", "drop"],
  },
  gone: {
    due: ["gone", "none"],
    returned: ["gone", "none"],
    threw: ["gone", "none"],
    timeout: ["gone", "none"],
    cancel: ["gone", "none"],
    withdraw: ["gone", "none"],
    "give back": ["gone", "none"],
    "session lost": ["gone", "none"],
    acknowledged: ["gone", "none"],
    refused: ["gone", "none"],
  },
};
