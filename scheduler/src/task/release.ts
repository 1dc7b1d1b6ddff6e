/**
 * Decides which release's definition of a task applies while processes of several releases run at the same time. Each process stores the
 * definitions of its release; a task has the definition of one of them. A release *backs* its definition while one of its processes is
 * alive, and for a grace time after that, which covers a restart.
 */
import { createHash } from "node:crypto";
import { beneath } from "./edits.ts";
import { definitionText, type TaskDefinition } from "./task.ts";

export interface Release {
  /** The label followed by a digest of the definitions, so that two builds with the same label are two releases. */
  readonly name: string;
  /** The label that the program gives; otherwise the version of its package. */
  readonly label: string;
  /** The label as a number, if it is a whole number; otherwise null. Numbers decide which of two releases is newer. */
  readonly number: number | null;
}

/** A release that backs a definition of the task: the digest of its definition, and the number of the release. */
export interface Backer {
  readonly code: string;
  readonly number: number | null;
}

/** The store's state about a task when a process has a definition of it that differs from the stored one. */
export interface Standing {
  /** The digest of the task's definition; null if a version of Carillon without releases stored it. */
  readonly code: string | null;
  /** True if a process of a release with the same label has had this same definition before. */
  readonly isKnown: boolean;
  /** The other releases that back a definition of the task. */
  readonly backers: readonly Backer[];
}

const digest = (text: string): string => createHash("sha256").update(text).digest("base64url");

/** Returns a digest of 22 characters of a definition without its manual edits. Equal definitions have equal digests. */
export const codeOf = (definition: TaskDefinition): string => codeOfText(definitionText(beneath(definition)));

/** Returns the digest that `codeOf` returns, from the text of a definition that has no edits. */
export const codeOfText = (text: string): string => digest(text).slice(0, 22);

export function releaseOf(label: string, definitions: Iterable<TaskDefinition>): Release {
  const texts = [...definitions].map(definitionText).sort();
  const number = /^[0-9]{1,15}$/.test(label) ? Number(label) : null;
  return { name: `${label}+${digest(texts.join("\n")).slice(0, 8)}`, label, number };
}

/**
 * Returns true if a process of this release may replace the task's definition with its own.
 *
 * It may if no other release backs the present definition. Otherwise the greater number decides; a release without a number is below any
 * number. If the numbers are equal, or neither release has one, a definition that is new to the store replaces the present one, and a
 * definition that a process had before, for example one of an old process that restarts during a roll-out, does not.
 */
export function mayReplace({ number }: Pick<Release, "number">, { code, isKnown, backers }: Standing): boolean {
  const present = backers.filter((backer) => backer.code === code);
  if (present.length === 0) return true;
  const greatest = Math.max(...present.map((backer) => backer.number ?? Number.NEGATIVE_INFINITY));
  const mine = number ?? Number.NEGATIVE_INFINITY;
  return mine === greatest ? !isKnown : mine > greatest;
}
