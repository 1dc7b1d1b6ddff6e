import { CarillonError } from "../errors.ts";
import type { HeldRun } from "./held-run.ts";

export interface Recall {
  fence: number;
  kind: "cancel" | "withdraw";
  why: string;
}

/**
 * Answers what is asked back.
 * @returns whether one is not held yet, its claim being on its way, and those that had started, of which the store is to know
 */
export function answerRecalls(
  recalls: readonly Recall[],
  held: ReadonlyMap<number, HeldRun>,
  cancel: (run: HeldRun, reason: CarillonError) => void,
  release: (run: HeldRun) => void,
): { open: boolean; keeps: HeldRun[] } {
  const answer = { open: false, keeps: [] as HeldRun[] };
  for (const { fence, kind, why } of recalls) {
    const run = held.get(fence);
    if (!run) {
      answer.open = true;
      continue;
    }
    if (kind === "cancel") {
      cancel(run, new CarillonError("CANCELLED", why));
      if (run.state === "ending") answer.keeps.push(run);
      continue;
    }
    const act = run.on("withdraw");
    if (act === "keep" || run.state === "ending") answer.keeps.push(run);
    // One whose verdict is on its way already needs no second one.
    else if (act === "report released") release(run);
  }
  return answer;
}
