/** A run's state: a shape, a word and a colour, so that the state is readable without any one of the three. */
import {
  IconAlertTriangleFilled,
  IconBan,
  IconCircleCheckFilled,
  IconCircleXFilled,
  IconClock,
  IconClockPause,
  IconHelpCircleFilled,
  IconLoader2,
  IconPlayerSkipForwardFilled,
  IconPlayerTrackNext,
} from "@tabler/icons-react";
import type { ReactNode } from "react";
import type { Answer } from "../../api/call.ts";
import { useWords } from "../../messages/words.ts";
import css from "./mark.module.css";

export type RunState = Answer<"listRuns">["items"][number]["state"];
export type Tone = "ok" | "bad" | "run" | "late" | "wait" | "skip";
/** A run's state as displayed: it distinguishes claimed runs that have started, and ready runs that are due or late. */
export type Shown = RunState | "running" | "due" | "late";

export const toneOf: Record<Shown, Tone> = {
  succeeded: "ok",
  failed: "bad",
  cancelled: "wait",
  skipped: "skip",
  held: "wait",
  paused: "wait",
  ready: "wait",
  claimed: "run",
  running: "run",
  due: "late",
  late: "late",
  undecided: "late",
};

const icons: Record<Shown, typeof IconBan> = {
  succeeded: IconCircleCheckFilled,
  failed: IconCircleXFilled,
  cancelled: IconBan,
  skipped: IconPlayerSkipForwardFilled,
  held: IconClockPause,
  paused: IconClockPause,
  ready: IconClock,
  claimed: IconPlayerTrackNext,
  running: IconLoader2,
  due: IconAlertTriangleFilled,
  late: IconAlertTriangleFilled,
  undecided: IconHelpCircleFilled,
};

export function shownState(run: { state: RunState; started: string | null; due: string }, now: number): Shown {
  if (run.state === "claimed" && run.started !== null) return "running";
  if (run.state === "ready" && Date.parse(run.due) < now - 1_000) return "due";
  return run.state;
}

export function StateMark({ state }: { state: Shown }) {
  const { t } = useWords();
  const Icon = icons[state];
  return (
    <span className={css.mark} data-tone={toneOf[state]} data-state={state}>
      <Icon size={15} aria-hidden className={state === "running" ? css.turning : undefined} />
      <span>{t(`state.${state}`)}</span>
    </span>
  );
}

/** A word in the colour of a state, for things other than runs. */
export function Tag({ tone, children }: { tone: Tone; children: ReactNode }) {
  return (
    <span className={css.tag} data-tone={tone}>
      {children}
    </span>
  );
}
