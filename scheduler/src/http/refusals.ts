import type { ClaimStanding } from "../access/worker-store.ts";
import { statusOf } from "../api/problem-status.ts";
import type { Refusal } from "../api/worker-protocol.ts";
import { type ErrorCode, isCarillonError } from "../base/errors.ts";
import { jsonText } from "../base/json.ts";
import type { Attached } from "./workers/sessions.ts";

/** A claim that a worker says something of. */
export interface Spoken {
  runId: number;
  fence: number;
}

export const claimText = ({ runId, fence }: Spoken) => `${runId} ${fence}`;

/** The book's word on claims, each found by its run and its fence: a fence alone would vouch for any run named beside it. */
export class Standings {
  readonly #byClaim = new Map<string, ClaimStanding>();

  /** @param found in the order of `claims` */
  constructor(claims: readonly Spoken[], found: readonly ClaimStanding[]) {
    claims.forEach((claim, at) => void this.#byClaim.set(claimText(claim), found[at] as ClaimStanding));
  }

  of(claim: Spoken): ClaimStanding | undefined {
    return this.#byClaim.get(claimText(claim));
  }
}

export const isForeign = (standing: ClaimStanding | undefined) =>
  standing?.standing === "foreign" || standing?.standing === "unknown";

export function isHeld(session: Attached, claim: Spoken, standings: Standings): boolean {
  return session.held.get(claim.fence)?.runId === claim.runId || standings.of(claim)?.standing === "held";
}

export function stale(spoken: Spoken, part: Refusal["part"], standings: Standings): Refusal {
  const standing = standings.of(spoken)?.standing;
  return refusal(
    spoken,
    part,
    standing === "foreign" ? "CLAIM_FOREIGN" : standing === "unknown" ? "RUN_UNKNOWN" : "FENCE_STALE",
  );
}

const keptWords = { report: "progress", log: "log fields" } as const;

/** What cannot be kept is refused by itself: a run must not be done again for a line of its log. */
export function kept(spoken: Spoken, part: keyof typeof keptWords, value: unknown, refused: Refusal[]): string | null {
  try {
    return jsonText(value, `run ${spoken.runId}: ${keptWords[part]}`);
  } catch (error) {
    if (!isCarillonError(error)) throw error;
    refused.push(refusal(spoken, part, error.code, error.message));
    return null;
  }
}

const overWords: Partial<Record<ErrorCode, string>> = {
  CLAIM_FOREIGN: "this claim is another session's",
  RUN_UNKNOWN: "no such claim was ever made",
  FENCE_STALE: "the claim is over; what was said of it changes nothing",
};

export function refusal(
  { runId, fence }: Spoken,
  part: Refusal["part"],
  code: ErrorCode,
  message = overWords[code] ?? "",
): Refusal {
  return { runId, fence, part, status: statusOf(code), code, message };
}
