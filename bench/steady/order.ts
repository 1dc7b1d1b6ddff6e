/** The configuration of a process under test: `tasks` tasks of one kind. */
export interface Order {
  kind: Kind;
  tasks: number;
  url: string;
  schema: string;
}

/**
 * second: all tasks are due at each second's start, half of them by `every`, half by cron with seconds. spread: each task is due at its own
 * millisecond of each second. minute: all tasks are due at each minute's start.
 */
export type Kind = "second" | "spread" | "minute";

export const periodMs: Record<Kind, number> = { second: 1_000, spread: 1_000, minute: 60_000 };

/** Returns the offset of a task's slots within the period, in ms. */
export function phaseMs(kind: Kind, task: number): number {
  return kind === "spread" ? task % 1_000 : 0;
}

export function taskName(task: number): string {
  return `steady-${String(task).padStart(5, "0")}`;
}
