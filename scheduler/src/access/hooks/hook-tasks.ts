/** Returns all tasks that a hook may run. The library imports this file instead of hook.ts, which would load zod. */
export const tasksOf = ({ task }: { task: string | { of: Record<string, string> } }): string[] =>
  typeof task === "string" ? [task] : [...new Set(Object.values(task.of))];
