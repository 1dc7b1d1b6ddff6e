import type { Answer } from "../api/call.ts";

export type Worker = Answer<"listWorkers">["items"][number];
export type WorkerGroup = Answer<"listGroups">["items"][number];
export type Drained = Answer<"listDrained">["items"][number];
