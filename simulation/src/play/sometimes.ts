import { type History, type Row, wentBack } from "../history.ts";
import type { Grant } from "../lock-history.ts";

/** Paths, each of which at least one seed of a campaign must take. Otherwise the seeds do not cover the cases that they are meant for. */
const paths: Record<string, (history: History) => boolean> = {
  "a leader was followed by another": ({ dump }) => dump.term.length > 1,
  "a session was ended by another": ({ applied }) =>
    applied.some(({ name, values, rows }) => name === "session-end" && values[1] !== null && rows.length > 0),
  "a process came back from a lost session": ({ happenings }) => saw(happenings, /taken for dead; joining again/),
  "claims were taken over by their process's new session": ({ applied }) =>
    applied.some(({ name, rows }) => name === "claim-adopt" && rows.length > 0),
  "a claim was taken back": ({ dump }) => dump.attempt.some(({ outcome }) => outcome === "lost"),
  "a run whose worker was lost succeeded later": ({ dump }) =>
    dump.run_history.some(
      ({ id, outcome }) => outcome === 0 && dump.attempt.some((row) => row.run_id === id && row.outcome === "lost"),
    ),
  "a verdict came too late": ({ dump }) => dump.late_result.length > 0,
  "an attempt was tried again": ({ dump }) => dump.attempt.some(({ outcome }) => outcome === "failed"),
  "slots were missed": ({ dump }) => dump.slot_range.some(({ outcome }) => outcome === 3),
  "a run was skipped": ({ dump }) => dump.run_history.some(({ outcome }) => outcome === 3),
  "a run was cancelled": ({ dump }) => dump.run_history.some(({ outcome }) => outcome === 2),
  "a handler was told to stop": ({ executions }) => executions.some(({ how }) => how === "stopped"),
  "a rescuer planned": ({ happenings }) => saw(happenings, /planning what no leader planned/),
  "an operation's outcome was unknown": ({ operations }) => operations.some(({ outcome }) => outcome === "unknown"),
  "an operation was refused": ({ operations }) => operations.some(({ outcome }) => outcome === "refused"),
  "a run waits for a decision": ({ dump }) => dump.run.some(({ state }) => state === 4),
  "a claim was given to a run twice": ({ executions }) =>
    executions.some(({ run, fence }) => executions.some((other) => other.run === run && other.fence > fence)),
  "a run came after another": ({ dump }) => dump.run_history.some(({ parent_id }) => parent_id !== null),
  "a slot was caught up with": ({ dump }) => dump.operation.some(({ kind, done }) => kind === "backfill" && done !== 0),
  "an operation was stopped": ({ dump }) => dump.operation.some(({ state }) => state === "stopped"),
  "an operation was stepped by two": ({ dump, applied }) =>
    dump.operation.some((row) => steppers(applied, row).size > 1),
  "a batch was taken up by another": ({ applied }) => {
    const batches = applied
      .filter(({ name }) => name === "operation-settle")
      .map(({ values }) => `${values[0]} ${values[1]}`);
    return new Set(batches).size < batches.length;
  },
  "a late write under a lock was refused": ({ locks }) => locks?.writes.some(({ accepted }) => !accepted) ?? false,
  "a release of a lock came too late": ({ locks }) => locks?.giveUps.some(({ changed }) => !changed) ?? false,
  "a grace lock was taken back": ({ locks }) => passed(locks, (before, next) => before.owner === next.owner),
  "a grace lock was another's after the grace": ({ locks }) =>
    passed(locks, (before, next) => before.owner !== next.owner),
  "a grace lock's holder beat before it was vacated": ({ applied }) =>
    applied.some(({ name, values, rows }) => name === "grace-lock-vacate" && values[2] !== null && rows.length === 0),
  "the store went back": ({ applied }) => applied.some(({ name }) => name === wentBack),
  "runs were given back to a store that had lost them": ({ happenings }) =>
    saw(happenings, /runs that the store had lost were given to it again/),
  "results were given back to a store that had lost them": ({ happenings }) =>
    saw(happenings, /results that the store had lost were given to it again/),
  "a statement waited for a lock": ({ blocked }) => blocked > 0,
};

/** True if a grace lock passed from a vanished holder to the next one in a way that `how` accepts. */
const passed = (locks: History["locks"], how: (before: Grant, next: Grant) => boolean): boolean => {
  const grants = locks?.grants.filter(({ graceMs }) => graceMs !== null) ?? [];
  return grants.some((next, i) => grants[i - 1]?.ended === "vanished" && how(grants[i - 1] as Grant, next));
};
const steppers = (applied: History["applied"], { id }: Row) =>
  new Set(
    applied.flatMap(({ name, values, who }) =>
      /^operation-/.test(name) && values[0] === id ? [who.split("#")[0]] : [],
    ),
  );
const saw = (happenings: History["happenings"], what: RegExp) => happenings.some((one) => what.test(one.what));

/** Returns the names of the paths that this history took. */
export function taken(history: History): string[] {
  return Object.keys(paths).filter((path) => paths[path]?.(history));
}

export const allPaths: readonly string[] = Object.keys(paths);
