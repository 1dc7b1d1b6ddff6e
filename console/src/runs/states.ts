import type { RunState } from "../parts/state/mark.tsx";

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
