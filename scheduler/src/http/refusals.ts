import type { ClaimStanding } from "../access/worker-store.ts";
import { statusOf } from "../api/problem-status.ts";
import type { Refusal } from "../api/worker-protocol.ts";
import { type ErrorCode, isCarillonError } from "../base/errors.ts";
import { inexactWords, jsonText } from "../base/json.ts";
import type { InexactNumber } from "../base/json-numbers.ts";
import type { InexactItems } from "./workers/inexact-parts.ts";
import type { Attached } from "./workers/sessions.ts";

/** The claim to which a part of a worker's poll refers. */
export interface Spoken {
  runId: number;
  fence: number;
}

export const claimText = ({ runId, fence }: Spoken) => `${runId} ${fence}`;

/** The state of claims in the store, found by run and fence together, so that a valid fence is not accepted with another run. */
export class Standings {
  readonly #byClaim = new Map<string, ClaimStanding>();

  /** @param found the states, in the order of `claims` */
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

/**
 * Converts a value to JSON text. A value that cannot be stored adds a refusal for this part only and returns null, so that for example an
 * invalid log line does not cause the run to be repeated.
 */
export function kept(
  spoken: Spoken,
  part: keyof typeof keptWords,
  value: unknown,
  refused: Refusal[],
  inexact: InexactItems,
): string | null {
  const found = inexact.get(spoken);
  if (found) {
    refused.push(inexactRefusal(spoken, part, found));
    return null;
  }
  try {
    return jsonText(value, `run ${spoken.runId}: ${keptWords[part]}`);
  } catch (error) {
    if (!isCarillonError(error)) throw error;
    refused.push(refusal(spoken, part, error.code, error.message));
    return null;
  }
}

/** Refuses a number that JavaScript cannot represent exactly, because another number would be stored. */
export function inexactRefusal(spoken: Spoken, part: Refusal["part"], { number, path }: InexactNumber): Refusal {
  const place = path.join(".");
  const message = `run ${spoken.runId}: the ${part} has ${inexactWords(number, place)}; give it as a text, in quotes`;
  return { ...refusal(spoken, part, "PAYLOAD_NOT_JSON", message), path: place };
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
