import type { ListedRun } from "./answers.ts";

type RunState = ListedRun["state"];

export const states: RunState[] = [
  "ready",
  "claimed",
  "held",
  "paused",
  "undecided",
  "succeeded",
  "failed",
  "cancelled",
  "skipped",
];

export const isState = (text: string): text is RunState => (states as string[]).includes(text);

export const isOver = ({ state }: { state: RunState }) =>
  ["succeeded", "failed", "cancelled", "skipped"].includes(state);

export type RunAct = "rerun" | "cancel" | "retry" | "fail";

/** The acts that a run's state allows, the most likely one first. */
export function actsOf(run: { state: RunState }): RunAct[] {
  if (isOver(run)) return ["rerun"];
  return run.state === "undecided" ? ["retry", "fail"] : ["cancel"];
}
