/**
 * Whose definition of a task counts while processes of several releases run side by side. A process brings the definitions of its
 * release; a task has the definition of one of them. A release stands behind its definition while a process of it lives, and for a
 * grace time after, which bridges a restart.
 */
import { createHash } from "node:crypto";
import { beneath } from "./edits.ts";
import { definitionText, type TaskDefinition } from "./task.ts";

export interface Release {
  /** The label, and what the definitions are: two builds with one label are two releases. */
  readonly name: string;
  /** What the program says, or the version of its package. */
  readonly label: string;
  /** Where the label is a whole number. Then it decides alone. */
  readonly number: number | null;
}

/** A release that stands behind a definition of a task. */
export interface Backer {
  readonly code: string;
  readonly number: number | null;
}

/** What the store knows of a task when a process of `mine` brings a definition that is not the task's. */
export interface Standing {
  /** Of the definition that the task has; null: it was stored before there were releases. */
  readonly code: string | null;
  /** Some process with the same label brought this same definition before. */
  readonly isKnown: boolean;
  /** What other releases stand behind. */
  readonly backers: readonly Backer[];
}

const digest = (text: string): string => createHash("sha256").update(text).digest("base64url");

/** Short for a definition as code has it: without what was edited by hand. Equal for equal ones. 22 characters. */
export const codeOf = (definition: TaskDefinition): string => codeOfText(definitionText(beneath(definition)));

/** The same from the text of one that was not edited. */
export const codeOfText = (text: string): string => digest(text).slice(0, 22);

export function releaseOf(label: string, definitions: Iterable<TaskDefinition>): Release {
  const texts = [...definitions].map(definitionText).sort();
  const number = /^[0-9]{1,15}$/.test(label) ? Number(label) : null;
  return { name: `${label}+${digest(texts.join("\n")).slice(0, 8)}`, label, number };
}

/**
 * Whether a process of this release may replace the definition that the task has by its own.
 *
 * Code that is new replaces what is there. Code that was there before, as of an old process that restarts in a roll-out, does not while
 * anyone stands behind the present definition. Where one of the two has a number, the greater decides alone, and none is less than any.
 */
export function mayReplace({ number }: Pick<Release, "number">, { code, isKnown, backers }: Standing): boolean {
  const present = backers.filter((backer) => backer.code === code);
  if (present.length === 0) return true;
  const greatest = Math.max(...present.map((backer) => backer.number ?? Number.NEGATIVE_INFINITY));
  const mine = number ?? Number.NEGATIVE_INFINITY;
  return mine === greatest ? !isKnown : mine > greatest;
}
