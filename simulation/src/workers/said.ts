import type { GivenVerdict } from "../../../scheduler/src/api/worker-protocol.ts";

export type Verdict = Omit<GivenVerdict, "runId" | "fence">;

/** Returns the JSON text of a verdict, by which verdicts are compared. */
export const textOf = (verdict: Verdict): string => JSON.stringify(verdict);

/** The rules that the harness checks; violations name them. */
export const rules = [
  "no answer is a server's fault",
  "a claim ends once",
  "a refusal is said, with its reason",
  "the same verdict has the same answer",
  "nothing is refused without a cause",
  "no part of a poll stops another",
  "a claim is one worker's",
  "a key that is revoked is refused",
  "history says what was accepted",
  "what was refused is kept as late",
  "what goes on is made once",
  "one live run of a key",
] as const;
export type Rule = (typeof rules)[number];
