/**
 * A claim as its worker sees it: a numbered, timed right to one attempt. `waiting`: claimed ahead of its due time, or until a slot is free.
 * `running`: the handler has it. `ending`: the handler was told to stop and has not returned. `settling`: the verdict is on its way to the
 * store. `gone`: the claim no longer belongs to this worker, or the store has its verdict.
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

/** The action of the worker after a step; each step has at most one. */
export type ClaimAct = "start" | "abort" | "report" | "report cancelled" | "report released" | "keep" | "drop" | "none";

type Step = readonly [ClaimState, ClaimAct];

/**
 * The table is complete on purpose: every event has an entry in every state. A withdrawal does not stop an attempt that has started (`keep`
 * reports the start to the store). A lost session drops claims that have not started and aborts those that have; the store then refuses
 * their late verdict.
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
