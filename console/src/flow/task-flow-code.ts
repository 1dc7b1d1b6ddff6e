import { screen } from "../shell/screen.ts";

/** The graph of tasks. Its layout is a large part of code that most pages do not need; the router loads it before it shows the graph. */
export const TaskFlow = screen(() => import("./task-flow.tsx"), "TaskFlow");
