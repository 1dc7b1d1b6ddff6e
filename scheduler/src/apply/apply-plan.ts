/**
 * Compares the files with the store and makes a plan of all steps, before anything is changed. Without side effects. docs/tasks/as-code.md
 * describes every state of a task and what the files may contain.
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
  /** The part's value before users edited it: as the last apply set it, or as another author defined it. */
  applied: Json;
  stored: Json;
}

export interface PlanStep {
  task: string;
  /** `adopt`: the task exists and belongs to no bundle. `refused`: the step cannot be executed; see `why`. */
  kind: "create" | "change" | "adopt" | "remove" | "none" | "refused";
  why?: string;
  hint?: string;
  /** The task's version on which the step is based; 0: the task never existed. */
  version: number;
  /** The new definition; undefined if the task is removed, or belongs to another bundle. */
  definition?: TaskDefinition;
  changes: FieldChange[];
  /** The parts of the definition that users have edited since the last apply. */
  drift: Drift[];
  /** True: the users' edits are kept; false: the files overwrite them, or there are none. */
  keepsEdits: boolean;
  /** For a removed task: the number of waiting runs that would end with it. */
  waiting?: number;
  /** The author of the task's current version, with reason and time. */
  by?: { author: string; reason: string; changedMs: number };
}

export interface PlanOptions {
  bundle: string;
  /** True: remove tasks of the bundle that are missing from the files. */
  prune: boolean;
  /** True: take over existing tasks that belong to no bundle. */
  adopt: boolean;
  /** True: the files overwrite parts that users have edited. */
  overwriteEdits: boolean;
}

export interface TaskPlan {
  bundle: string;
  /** The steps in an order in which they can be executed. */
  steps: PlanStep[];
  /** Tasks of the bundle that are missing from the files, but stay because `prune` was not given. */
  left: string[];
}

export function planApply(
  wanted: readonly TaskDefinition[],
  present: readonly AppliedTask[],
  options: PlanOptions,
): TaskPlan {
  const planning = planSteps(wanted, present, options);
  let turn = planning.next();
  while (!turn.done) turn = planning.next();
  return turn.value;
}

/** As `planApply`, but as a generator that yields after each task, so that the caller can do other work in between. */
export function* planSteps(
  wanted: readonly TaskDefinition[],
  stored: readonly AppliedTask[],
  options: PlanOptions,
): Generator<void, TaskPlan> {
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
  // Reversed, so that a task is removed before the task after which it runs.
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

/** Checks and returns a bundle's name. @throws OPTION_INVALID */
export function checkBundle(name: unknown): string {
  if (typeof name === "string" && /^[\p{L}\p{N}][\p{L}\p{N}._:/@-]{0,99}$/u.test(name)) return name;
  throw new CarillonError("OPTION_INVALID", `a bundle cannot be called ${shownValue(name)}`, {
    hint: "Use 1 to 100 letters, digits and . _ : / @ -, the first a letter or digit.",
  });
}

/** Returns all steps except those that change nothing; refused steps are included. */
export const acting = <Step extends Pick<PlanStep, "kind">>(steps: readonly Step[]): Step[] =>
  steps.filter(({ kind }) => kind !== "none");

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

/** Returns the task's definition as the last apply set it, with later edits by users applied on top. */
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
