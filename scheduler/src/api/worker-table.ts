import type { ErrorCode } from "../base/errors.ts";

/**
 * The protocol between HTTP workers and servers as two tables of every state and every event. docs/reference/worker-failures.md shows them,
 * a test executes each pair against servers, and `npm run prove -- workers` checks random workers against them.
 */

/**
 * The state of the session that a poll names. `none`: no session has this number or name. `live`: the session has not ended.
 * `waiting`: it is live and one of its polls waits for runs. `ended`: its worker left, or was silent for longer than the
 * session's timeout. `revoked`: its key was revoked.
 */
export const sessionStates = ["none", "live", "waiting", "ended", "revoked"] as const;
export type SessionState = (typeof sessionStates)[number];

export const sessionEvents = [
  "join",
  "join again",
  "poll",
  "wait",
  "leave",
  "another key polls",
  "silence",
  "revoke",
] as const;
export type SessionEvent = (typeof sessionEvents)[number];

/**
 * The answer to a poll: `answered` means status 200, an error code means a refusal with that code. null: the event is not a poll.
 */
export type SessionAnswer =
  | "answered"
  | Extract<ErrorCode, "SESSION_LOST" | "NODE_NAME_TAKEN" | "KEY_FORBIDDEN" | "KEY_UNKNOWN">
  | null;

export interface SessionStep {
  readonly next: SessionState;
  readonly answer: SessionAnswer;
  /** The answer to the poll that waits, if the event ends its wait. */
  readonly waiting?: SessionAnswer;
}

const step = (next: SessionState, answer: SessionAnswer, waiting?: SessionAnswer): SessionStep =>
  waiting === undefined ? { next, answer } : { next, answer, waiting };

export const sessionTable: Record<SessionState, Record<SessionEvent, SessionStep>> = {
  none: {
    join: step("live", "answered"),
    "join again": step("live", "answered"),
    poll: step("none", "SESSION_LOST"),
    wait: step("none", "SESSION_LOST"),
    leave: step("none", "SESSION_LOST"),
    "another key polls": step("none", "SESSION_LOST"),
    silence: step("none", null),
    revoke: step("revoked", null),
  },
  live: {
    join: step("live", "NODE_NAME_TAKEN"),
    "join again": step("live", "answered"),
    poll: step("live", "answered"),
    wait: step("waiting", "answered"),
    leave: step("ended", "answered"),
    "another key polls": step("live", "KEY_FORBIDDEN"),
    silence: step("ended", null),
    revoke: step("revoked", null),
  },
  waiting: {
    join: step("waiting", "NODE_NAME_TAKEN"),
    "join again": step("waiting", "answered"),
    poll: step("waiting", "answered"),
    // The new poll replaces the waiting one, which is answered at once.
    wait: step("waiting", "answered", "answered"),
    leave: step("ended", "answered", "SESSION_LOST"),
    "another key polls": step("waiting", "KEY_FORBIDDEN"),
    // A waiting poll keeps its session alive.
    silence: step("waiting", null),
    revoke: step("revoked", null, "KEY_UNKNOWN"),
  },
  ended: {
    join: step("live", "answered"),
    "join again": step("live", "answered"),
    poll: step("ended", "SESSION_LOST"),
    wait: step("ended", "SESSION_LOST"),
    leave: step("ended", "SESSION_LOST"),
    "another key polls": step("ended", "KEY_FORBIDDEN"),
    silence: step("ended", null),
    revoke: step("revoked", null),
  },
  revoked: {
    join: step("revoked", "KEY_UNKNOWN"),
    "join again": step("revoked", "KEY_UNKNOWN"),
    poll: step("revoked", "KEY_UNKNOWN"),
    wait: step("revoked", "KEY_UNKNOWN"),
    leave: step("revoked", "KEY_UNKNOWN"),
    "another key polls": step("revoked", "KEY_FORBIDDEN"),
    silence: step("revoked", null),
    revoke: step("revoked", null),
  },
};

/**
 * The state of a claim (run and fence) from the view of a live session that names it. `unknown`: no such claim was made, or its record was
 * deleted. `foreign`: the claim belongs to another worker, or an earlier session of this worker that it did not name as `former` has it.
 * `held`: the session has the claim. `cancelling`: the session has the claim, and the store has recalled it. `ended`: a verdict other than
 * `released` ended it. `released`: its worker returned it, or a server did because its run was due after the session's end; the run has not
 * been claimed since. `lost`: it was taken back from a session that had ended.
 */
export const claimStandings = ["unknown", "foreign", "held", "cancelling", "ended", "released", "lost"] as const;
export type ClaimState = (typeof claimStandings)[number];

/** The parts of a poll that refer to a claim; `claimHappenings` are events of a claim without a poll of its worker. */
export const claimParts = [
  "report",
  "log",
  "state",
  "span",
  "spawn",
  "inputs",
  "hold",
  "verdict",
  "release",
  "same again",
  "inexact verdict",
] as const;
export const claimHappenings = ["cancel", "take back", "claim again"] as const;
export type ClaimPart = (typeof claimParts)[number];
export type ClaimHappening = (typeof claimHappenings)[number];
export type ClaimEvent = ClaimPart | ClaimHappening;
export const claimEvents: readonly ClaimEvent[] = [...claimParts, ...claimHappenings];

/**
 * `accepted`: the part was executed, and is in no list of the answer. `late`: refused with FENCE_STALE, and recorded as a late result.
 * `in lost`: the fence is in the answer's list `lost`. An error code: the part is in the list `refused` with this code. null: the pair
 * cannot occur, or the event is not a part of a poll.
 */
export type ClaimAnswer =
  | "accepted"
  | "late"
  | "in lost"
  | Extract<ErrorCode, "RUN_UNKNOWN" | "CLAIM_FOREIGN" | "FENCE_STALE" | "PAYLOAD_NOT_JSON">
  | null;

export type ClaimStep = readonly [next: ClaimState, answer: ClaimAnswer];

/** Returns the same step for all parts that request something for a claim, which only the session that has the claim may do. */
function asking(
  state: ClaimState,
  answer: ClaimAnswer,
): Record<Exclude<ClaimPart, "log" | "hold" | "verdict" | "release" | "same again" | "inexact verdict">, ClaimStep> {
  return {
    report: [state, answer],
    state: [state, answer],
    span: [state, answer],
    spawn: [state, answer],
    inputs: [state, answer],
  };
}

const nothing = (state: ClaimState): Record<ClaimHappening, ClaimStep> => ({
  cancel: [state, null],
  "take back": [state, null],
  "claim again": [state, null],
});

function refusing(state: "unknown" | "foreign", code: "RUN_UNKNOWN" | "CLAIM_FOREIGN"): Record<ClaimEvent, ClaimStep> {
  return {
    ...asking(state, code),
    log: [state, code],
    hold: [state, "in lost"],
    verdict: [state, code],
    release: [state, code],
    "same again": [state, null],
    "inexact verdict": [state, "PAYLOAD_NOT_JSON"],
    ...nothing(state),
  };
}

export const claimStandingTable: Record<ClaimState, Record<ClaimEvent, ClaimStep>> = {
  unknown: refusing("unknown", "RUN_UNKNOWN"),
  foreign: refusing("foreign", "CLAIM_FOREIGN"),
  held: {
    ...asking("held", "accepted"),
    log: ["held", "accepted"],
    hold: ["held", "accepted"],
    verdict: ["ended", "accepted"],
    release: ["released", "accepted"],
    "same again": ["held", null],
    // An inexact verdict contains a number that loses precision. All other parts of the poll that refer to the claim are then refused
    // too.
    "inexact verdict": ["held", "PAYLOAD_NOT_JSON"],
    ...nothing("held"),
    cancel: ["cancelling", null],
    "take back": ["lost", null],
  },
  cancelling: {
    ...asking("cancelling", "accepted"),
    log: ["cancelling", "accepted"],
    hold: ["cancelling", "accepted"],
    // If the verdict requests a follow-up run, that run is not started.
    verdict: ["ended", "accepted"],
    // The run ends as cancelled instead of being released.
    release: ["ended", "accepted"],
    "same again": ["cancelling", null],
    "inexact verdict": ["cancelling", "PAYLOAD_NOT_JSON"],
    ...nothing("cancelling"),
    "take back": ["lost", null],
  },
  ended: {
    ...asking("ended", "FENCE_STALE"),
    log: ["ended", "accepted"],
    // For some seconds after the verdict, the server leaves the fence out of `lost`, because the worker may have sent the poll before it
    // received the answer to its verdict.
    hold: ["ended", "in lost"],
    verdict: ["ended", "late"],
    release: ["ended", "FENCE_STALE"],
    "same again": ["ended", "accepted"],
    "inexact verdict": ["ended", "PAYLOAD_NOT_JSON"],
    ...nothing("ended"),
  },
  released: {
    ...asking("released", "FENCE_STALE"),
    log: ["released", "accepted"],
    hold: ["released", "in lost"],
    verdict: ["released", "late"],
    release: ["released", "accepted"],
    "same again": ["released", "accepted"],
    "inexact verdict": ["released", "PAYLOAD_NOT_JSON"],
    ...nothing("released"),
    // For some seconds after a worker has claimed the run again, the server that accepted the release still answers FENCE_STALE to parts
    // that refer to the old claim.
    "claim again": ["unknown", null],
  },
  lost: {
    ...asking("lost", "FENCE_STALE"),
    log: ["lost", "accepted"],
    hold: ["lost", "in lost"],
    verdict: ["lost", "late"],
    release: ["lost", "FENCE_STALE"],
    "same again": ["lost", null],
    "inexact verdict": ["lost", "PAYLOAD_NOT_JSON"],
    ...nothing("lost"),
  },
};
