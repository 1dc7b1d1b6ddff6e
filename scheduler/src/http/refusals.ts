import { type ErrorCode, isCarillonError } from "../errors.ts";
import { jsonText } from "../json.ts";
import { statusOf } from "../problem-status.ts";
import type { Refusal } from "../worker-protocol.ts";
import type { ClaimStanding } from "../worker-store.ts";
import type { Attached } from "./sessions.ts";

/** A claim that a worker says something of. */
export interface Spoken {
  runId: number;
  fence: number;
}

export const isForeign = (standing: ClaimStanding | undefined) =>
  standing?.standing === "foreign" || standing?.standing === "unknown";

export function isHeld(session: Attached, { runId, fence }: Spoken, standings: Map<number, ClaimStanding>): boolean {
  return session.held.get(fence)?.runId === runId || standings.get(fence)?.standing === "held";
}

export function stale(spoken: Spoken, part: Refusal["part"], standings: Map<number, ClaimStanding>): Refusal {
  const standing = standings.get(spoken.fence)?.standing;
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
