/**
 * An edit by hand lies over what defines a task. A definition in code is stored at every start of every process that has
 * it, so an edit that simply replaced it would be gone with the next start; and code that gave way altogether would
 * change nothing any more. So each edited part keeps what the definer says of it beneath (`asDefined`), a new definition
 * replaces that and all the other parts, and a revert puts it back. A part on which both agree is edited no more.
 */
import { sortedJson } from "./json.ts";
import { defineTask, type TaskDefinition, type TaskOptions } from "./task.ts";
import { checkTogether, policyNames } from "./task-policies.ts";

export type EditedParts = NonNullable<TaskDefinition["asDefined"]>;
export type TaskPart = keyof EditedParts;

/** What a task's options are called in its definition. */
const parts: Record<keyof TaskOptions, TaskPart> = {
  description: "description",
  group: "group",
  schedule: "schedule",
  slotPayload: "slotPayload",
  payloadSchema: "payloadSchema",
  priority: "priority",
  timeout: "timeoutMs",
  retry: "retry",
  overlap: "overlap",
  misfire: "misfire",
  onWorkerLost: "onWorkerLost",
  grace: "graceMs",
  history: "history",
  command: "command",
  http: "http",
  calendar: "calendar",
  blackout: "blackout",
  route: "route",
  labels: "labels",
  limit: "limit",
  rate: "rate",
  after: "after",
};

/** Parts that a definition may be without. An edit remembers their absence as null, since JSON has no other word for it. */
const optional: ReadonlySet<TaskPart> = new Set([
  ...policyNames,
  "history",
  "http",
  "payloadSchema",
  "calendar",
  "blackout",
  "after",
]);

/** A part by the name of its option, or by its own. */
export const partCalled = (name: string): TaskPart | undefined =>
  Object.hasOwn(parts, name) ? parts[name as keyof TaskOptions] : Object.values(parts).find((part) => part === name);

export const editedParts = ({ asDefined = {} }: TaskDefinition): TaskPart[] => Object.keys(asDefined) as TaskPart[];

/**
 * The definition with these options edited; of a retry or misfire policy what is not named stays as it is.
 * @throws what `defineTask` throws
 */
export function edited(present: TaskDefinition, options: TaskOptions): TaskDefinition {
  const { retry, misfire } = options;
  const whole = defineTask(present.name, {
    ...options,
    ...(retry === undefined ? {} : { retry: { ...retryOptions(present), ...asObject(retry, "attempts") } }),
    ...(misfire === undefined ? {} : { misfire: { ...misfireOptions(present), ...asObject(misfire, "policy") } }),
  });
  const names = (Object.keys(options) as (keyof TaskOptions)[]).map((name) => parts[name]);
  const beneath = Object.fromEntries(names.map((part) => [part, present[part] ?? null])) as EditedParts;
  const made = over({ ...present, ...only(whole, names) }, { ...beneath, ...present.asDefined });
  checkTogether(made.name, made, made.overlap, made.schedule);
  return made;
}

/** What a definer's new definition makes of a task that may have been edited. @param present undefined: there is none */
export function keepEdits(defined: TaskDefinition, present: TaskDefinition | undefined): TaskDefinition {
  if (!present?.asDefined) return defined;
  const names = editedParts(present);
  return over({ ...defined, ...only(present, names) }, only(defined, names));
}

/** What its definer says: the definition with no part edited. */
export const beneath = (definition: TaskDefinition): TaskDefinition => reverted(definition, editedParts(definition));

/** The definition as one whose definer says `defined`: whatever it says otherwise counts as edited by hand. */
export function laidOver(definition: TaskDefinition, defined: TaskDefinition): TaskDefinition {
  const parts = new Set(
    Object.keys({ ...definition, ...defined, asDefined: null }) as (TaskPart | "name" | "asDefined")[],
  );
  const names = [...parts].filter((part): part is TaskPart => part !== "name" && part !== "asDefined");
  return over(definition, only(beneath(defined), names));
}

/** The definition with these parts as its definer says; others stay edited. */
export function reverted(present: TaskDefinition, names: TaskPart[]): TaskDefinition {
  const beneath = only(present.asDefined ?? {}, names);
  return over({ ...present, ...beneath }, present.asDefined ?? {});
}

/** The definition as it was once, laid over what defines it now: code that starts again does not undo it. */
export function restored(present: TaskDefinition, once: TaskDefinition): TaskDefinition {
  const { asDefined: _, ...parts } = once;
  const names = [...new Set([...Object.keys(parts), ...optional])] as TaskPart[];
  const differing = names.filter((part) => sortedJson(once[part] ?? null) !== sortedJson(present[part] ?? null));
  const beneath = Object.fromEntries(differing.map((part) => [part, present[part] ?? null])) as EditedParts;
  return over({ ...present, ...only(once, differing) }, { ...beneath, ...present.asDefined });
}

function over(definition: TaskDefinition, beneath: EditedParts): TaskDefinition {
  const { asDefined: _, ...rest } = definition;
  for (const part of optional) if (rest[part] === null) delete rest[part];
  const differing = Object.entries(beneath).filter(
    ([part, value]) => sortedJson(value ?? null) !== sortedJson(rest[part as TaskPart] ?? null),
  );
  return differing.length === 0 ? rest : { ...rest, asDefined: Object.fromEntries(differing) };
}

const only = (from: EditedParts, names: TaskPart[]): EditedParts =>
  Object.fromEntries(
    names
      .filter((name) => name in from || optional.has(name))
      .map((name) => [name, optional.has(name) ? (from[name] ?? null) : from[name]]),
  );

const asObject = <T extends object>(given: T | number | string, name: string): T =>
  typeof given === "object" ? given : ({ [name]: given } as T);

const retryOptions = ({ retry }: TaskDefinition) => ({
  ...{ attempts: retry.attempts, backoff: retry.backoff, jitter: retry.jitter },
  ...{ delay: retry.delayMs, maxDelay: retry.maxDelayMs },
});

const misfireOptions = ({ misfire: { policy, afterMs, cap, perSecond } }: TaskDefinition) => ({
  ...{ policy, after: afterMs, cap },
  ...(perSecond === null ? {} : { perSecond }),
});
