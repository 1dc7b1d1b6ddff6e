/** Returns all tasks that a hook may run. A file of its own, since the library needs it and must not load zod at its import. */
export const tasksOf = ({ task }: { task: string | { of: Record<string, string> } }): string[] =>
  typeof task === "string" ? [task] : [...new Set(Object.values(task.of))];
