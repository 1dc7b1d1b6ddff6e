import type { Answer } from "../api/call.ts";

export type Group = Answer<"listDeadGroups">["groups"][number];
/** The filter of the list: an act on a group concerns only those of its letters that match. */
export interface Narrowing {
  task?: string;
  matching?: string;
  since?: string;
  until?: string;
}

export const wordsOf = ({ reason }: Group): string | undefined => reason?.words || reason?.code || undefined;
