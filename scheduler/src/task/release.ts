/**
 * Decides which release's definition of a task applies while processes of several releases run side by side. A process brings the
 * definitions of its release; a task has the definition of one of these releases. A release backs its definition while a process of it
 * lives, and for a grace time after that, which bridges a restart.
 */
import { createHash } from "node:crypto";
import { beneath } from "./edits.ts";
import { definitionText, type TaskDefinition } from "./task.ts";

export interface Release {
  /** The label and a digest of the definitions, so that two builds with the same label are two releases. */
  readonly name: string;
  /** The label that the program gives, or the version of its package. */
  readonly label: string;
  /** The label as a number, if it is a whole number; then only the number decides. */
  readonly number: number | null;
}

/** A release that backs a definition of a task. */
export interface Backer {
  readonly code: string;
  readonly number: number | null;
}

/** The state in the store when a process of the release `mine` brings a definition that differs from the task's. */
export interface Standing {
  /** Digest of the task's definition; null: it was stored before there were releases. */
  readonly code: string | null;
  /** True if a process with the same label brought this same definition before. */
  readonly isKnown: boolean;
  /** The releases that back a definition of the task. */
  readonly backers: readonly Backer[];
}

const digest = (text: string): string => createHash("sha256").update(text).digest("base64url");

/** A digest, 22 characters, of a definition as code gives it, without manual edits. Equal definitions have equal digests. */
export const codeOf = (definition: TaskDefinition): string => codeOfText(definitionText(beneath(definition)));

/** The same digest, from the text of a definition that was not edited. */
export const codeOfText = (text: string): string => digest(text).slice(0, 22);

export function releaseOf(label: string, definitions: Iterable<TaskDefinition>): Release {
  const texts = [...definitions].map(definitionText).sort();
  const number = /^[0-9]{1,15}$/.test(label) ? Number(label) : null;
  return { name: `${label}+${digest(texts.join("\n")).slice(0, 8)}`, label, number };
}

/**
 * Returns whether a process of this release may replace the task's definition by its own.
 *
 * New code replaces the present definition. Code that was brought before, such as that of an old process that restarts during a roll-out,
 * does not replace it while another release backs the present definition. If one of the two releases has a number, the greater number alone
 * decides; a release without a number is below any number.
 */
export function mayReplace({ number }: Pick<Release, "number">, { code, isKnown, backers }: Standing): boolean {
  const present = backers.filter((backer) => backer.code === code);
  if (present.length === 0) return true;
  const greatest = Math.max(...present.map((backer) => backer.number ?? Number.NEGATIVE_INFINITY));
  const mine = number ?? Number.NEGATIVE_INFINITY;
  return mine === greatest ? !isKnown : mine > greatest;
}
