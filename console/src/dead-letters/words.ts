import type { Answer } from "../api/call.ts";

export type Group = Answer<"listDeadGroups">["groups"][number];
/** What the list is narrowed to: an act on a group means these of its letters alone. */
export interface Narrowing {
  task?: string;
  since?: string;
}

export const wordsOf = ({ reason }: Group): string | undefined => reason?.words || reason?.code || undefined;
