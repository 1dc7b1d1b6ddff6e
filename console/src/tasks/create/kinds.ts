/** How a task's runs are executed. "http": a request to a URL; "command": a program; "code": a worker's handler with the task's name. */
export const kinds = ["http", "command", "code"] as const;
export type Kind = (typeof kinds)[number];
