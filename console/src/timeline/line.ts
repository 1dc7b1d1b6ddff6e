import type { Answer } from "../api/call.ts";

export type Line = Answer<"getTimeline">;
