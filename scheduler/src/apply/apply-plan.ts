/**
 * Compares the files with the store and makes a plan: pure, and complete before anything is changed. docs/as-code.md has every state of a
 * task × what its files contain.
 */

import { CarillonError } from "../base/errors.ts";
import { type Json, shownValue } from "../base/json.ts";
import { inOrder } from "../task/after.ts";
import type { AppliedTask } from "../task/applied-store.ts";
import { beneath, editedParts, keepEdits, laidOver, type TaskPart } from "../task/edits.ts";
import { definitionText, type TaskDefinition } from "../task/task.ts";
import { asSaid, type FieldChange, fieldChanges } from "../task/written.ts";

export interface Drift {
  part: TaskPart;
  /** The value that the last apply set, or another author of the task. */
  applied: Json;
  stored: Json;
}

export interface PlanStep {
  task: string;
  /** `adopt`: the task exists and belongs to no bundle. `refused`: the step cannot be carried out; see `why`. */
  kind: "create" | "change" | "adopt" | "remove" | "none" | "refused";
  why?: string;
  hint?: string;
  /** The version that the step is based on; 0: the task never existed. */
  version: number;
  /** The new definition; absent: the task is removed, or stays unchanged. */
  definition?: TaskDefinition;
  changes: FieldChange[];
  /** The parts that were edited by hand since the last apply. */
  drift: Drift[];
  /** True: the edits by hand stay; false: the files overwrite them. */
  keepsEdits: boolean;
  /** How many waiting runs would end with a removed task. */
  waiting?: number;
  /** The author of the current version. */
  by?: { author: string; reason: string; changedMs: number };
}

export interface PlanOptions {
  bundle: string;
  /** Remove the bundle's tasks that the files no longer have. */
  prune: boolean;
  /** Take over existing tasks that belong to no bundle. */
  adopt: boolean;
  /** The files take precedence over edits by hand. */
  overwriteEdits: boolean;
}

export interface ApplyPlan {
  bundle: string;
  /** The steps, in an order in which they can be executed. */
  steps: PlanStep[];
  /** Tasks of the bundle that are missing from the files, but stay because `prune` was not given. */
  left: string[];
}

export function planApply(
  wanted: readonly TaskDefinition[],
  present: readonly AppliedTask[],
  options: PlanOptions,
): ApplyPlan {
  const planning = planSteps(wanted, present, options);
  let turn = planning.next();
  while (!turn.done) turn = planning.next();
  return turn.value;
}

/** As `planApply`, but yields after each task, so that the caller can do other work in between. */
export function* planSteps(
  wanted: readonly TaskDefinition[],
  stored: readonly AppliedTask[],
  options: PlanOptions,
): Generator<void, ApplyPlan> {
  const present = stored.map((task) => ({
    ...task,
    definition: asSaid(task.definition),
    applied: task.applied && asSaid(task.applied),
  }));
  const there = new Map(present.map((task) => [task.name, task]));
  const named = new Set(wanted.map(({ name }) => name));
  const steps: PlanStep[] = [];
  for (const definition of inOrder(wanted)) {
    steps.push(stepOf(definition, there.get(definition.name), options));
    yield;
  }
  const gone = present.filter(({ name, bundle, removed }) => bundle === options.bundle && !removed && !named.has(name));
  // A task that runs after another task is removed before that task.
  const order = inOrder(gone.map(({ definition }) => definition))
    .map(({ name }) => name)
    .reverse();
  if (!options.prune) return { bundle: options.bundle, steps, left: order };
  for (const name of order) {
    const task = there.get(name) as AppliedTask;
    const shared = { task: name, version: task.version, changes: [], drift: driftOf(task), keepsEdits: false };
    steps.push({ ...shared, by: byOf(task), kind: "remove", waiting: task.waiting });
    yield;
  }
  return { bundle: options.bundle, steps, left: [] };
}

/** @throws OPTION_INVALID */
export function checkBundle(name: unknown): string {
  if (typeof name === "string" && /^[\p{L}\p{N}][\p{L}\p{N}._:/@-]{0,99}$/u.test(name)) return name;
  throw new CarillonError("OPTION_INVALID", `a bundle cannot be called ${shownValue(name)}`, {
    hint: "Use 1 to 100 letters, digits and . _ : / @ -, the first a letter or digit.",
  });
}

/** The steps that change something. */
export const acting = ({ steps }: ApplyPlan): PlanStep[] => steps.filter(({ kind }) => kind !== "none");

function stepOf(wanted: TaskDefinition, task: AppliedTask | undefined, options: PlanOptions): PlanStep {
  const base = { task: wanted.name, version: task?.version ?? 0, changes: [], drift: [], keepsEdits: false };
  if (!task || task.removed) return { ...base, kind: "create", definition: wanted };
  const by = byOf(task);
  if (task.bundle !== null && task.bundle !== options.bundle) {
    return {
      ...base,
      by,
      kind: "refused",
      why: `it belongs to the bundle ${task.bundle}`,
      hint: `Take it out of that bundle's files and apply them with --prune, or leave it out here.`,
    };
  }
  const layered = layeredOf(task);
  const definition = options.overwriteEdits ? wanted : keepEdits(wanted, layered);
  const drift = driftOf(task);
  const same = definitionText(definition) === definitionText(options.overwriteEdits ? task.definition : layered);
  const changes = fieldChanges(task.definition, definition);
  const shared = { ...base, by, definition, changes, drift, keepsEdits: drift.length > 0 && !options.overwriteEdits };
  if (task.bundle === null) {
    if (options.adopt) return { ...shared, kind: "adopt" };
    return {
      ...shared,
      kind: "refused",
      why: `it is there already, made by ${task.author}${task.reason === "" ? "" : ` (${task.reason})`}, and belongs to no bundle`,
      hint: "Say --adopt to let these files define it from now on.",
    };
  }
  return same ? { ...shared, kind: "none" } : { ...shared, kind: "change" };
}

/** The task as its bundle's files define it, with the edits by hand laid over the result of the last apply. */
const layeredOf = ({ definition, applied }: AppliedTask): TaskDefinition =>
  applied === null ? definition : laidOver(definition, beneath(applied));

function driftOf(task: AppliedTask): Drift[] {
  const layered = layeredOf(task);
  const asDefined = layered.asDefined ?? {};
  return editedParts(layered).map((part) => ({
    part,
    applied: (asDefined[part] ?? null) as Json,
    stored: (layered[part] ?? null) as Json,
  }));
}

const byOf = ({ author, reason, changedMs }: AppliedTask) => ({ author, reason, changedMs });
