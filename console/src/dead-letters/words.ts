import type { Answer } from "../api/call.ts";

export type Group = Answer<"listDeadGroups">["groups"][number];
/** The list's filter. An act on a group affects only the group's dead letters that match this filter. */
export interface Narrowing {
  task?: string;
  matching?: string;
  since?: string;
  until?: string;
}

export const wordsOf = ({ reason }: Group): string | undefined => reason?.words || reason?.code || undefined;
