/** The orders for a process under test: `tasks` tasks of one kind. */
export interface Order {
  kind: Kind;
  tasks: number;
  url: string;
  schema: string;
}

/**
 * second: all at each second's start, half of them `every`, half cron with seconds. spread: each at a millisecond of the
 * second of its own. minute: all at each minute's start.
 */
export type Kind = "second" | "spread" | "minute";

export const periodMs: Record<Kind, number> = { second: 1_000, spread: 1_000, minute: 60_000 };

/** How far after the period's start a task's slots lie. */
export function phaseMs(kind: Kind, task: number): number {
  return kind === "spread" ? task % 1_000 : 0;
}

export function taskName(task: number): string {
  return `steady-${String(task).padStart(5, "0")}`;
}
