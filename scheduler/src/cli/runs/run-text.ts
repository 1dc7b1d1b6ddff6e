import { outcomes } from "../../run/run.ts";
import type { RunRecord } from "../../run/run-record.ts";
import type { Paint, Style } from "../screen/style.ts";
import { errorWords, type RunEnd } from "./event-lines.ts";

const marks: Record<RunRecord["state"], string> = {
  held: "…",
  paused: "‖",
  ready: "…",
  claimed: "▶",
  undecided: "?",
  succeeded: "✓",
  failed: "✗",
  cancelled: "⊘",
  skipped: "↷",
};

export const stateText = (state: RunRecord["state"]) => `${marks[state]} ${state}`;

export function statePaint(state: RunRecord["state"], style: Style): Paint {
  switch (state) {
    case "succeeded":
      return style.good;
    case "failed":
      return style.bad;
    case "cancelled":
    case "undecided":
      return style.warning;
    case "claimed":
      return style.accent;
    default:
      return style.dim;
  }
}

/** Converts a run to its printable end; undefined if the run has not ended. */
export function endOfRun(run: RunRecord): RunEnd | undefined {
  const outcome = outcomes.find((end) => end === run.state);
  return outcome && { ...run, outcome, error: errorWords(run.error) };
}
