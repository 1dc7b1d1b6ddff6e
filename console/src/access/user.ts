import type { Answer } from "../api/call.ts";

export type User = Answer<"listUsers">["items"][number];
