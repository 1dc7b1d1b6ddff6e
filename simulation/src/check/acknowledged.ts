import type { Checker, History } from "../history.ts";

/**
 * Checks that every acknowledged enqueue has exactly one run, that live runs of a task have different keys, and that a task has
 * all its versions and the state of its last operation.
 */
export const acknowledged: Checker = {
  invariant: "14: what was acknowledged is neither lost nor doubled",
  check(history) {
    const { operations, dump } = history;
    const runs = [...dump.run, ...dump.run_history].map(({ id }) => id);
    for (const { id, kind, outcome, run } of operations) {
      if (kind !== "enqueue" || outcome !== "ok" || run === undefined) continue;
      const found = runs.filter((one) => one === run).length;
      if (found !== 1) return { what: `${id} was told of run ${run}, which is there ${found} times`, run };
    }
    const keys = new Set<string>();
    for (const { id, task_id, key } of dump.run) {
      if (key === null) continue;
      if (keys.has(`${task_id} ${key}`)) return { what: `two live runs with the key ${key}`, run: id as number };
      keys.add(`${task_id} ${key}`);
    }
    for (const { id, name, version } of dump.task) {
      const versions = dump.task_version.filter(({ task_id }) => task_id === id).map((row) => row.version as number);
      if (versions.some((one, i) => one !== i + 1) || versions.at(-1) !== version)
        return { what: `${name} is at version ${version}, and has ${versions.join(" ")}`, task: name as string };
    }
    return lastWord(history);
  },
};

/**
 * Checks that a task is in the state that its last operation gave it. Skipped if that operation was not acknowledged, or overlapped with
 * another one.
 */
function lastWord({ operations, dump }: History): ReturnType<Checker["check"]> {
  for (const { name, paused_ms, deleted_ms } of dump.task) {
    const own = operations.filter(({ task, kind }) => task === name && /save|task$/.test(kind));
    const last = own.at(-1);
    if (last?.outcome !== "ok") continue;
    if (own.some((one) => one !== last && (one.endedMs ?? Number.POSITIVE_INFINITY) > last.invokedMs)) continue;
    const isRemoved = deleted_ms !== null;
    if (isRemoved !== (last.kind === "remove task"))
      return {
        what: `${last.id} (${last.kind}) was the last word, and ${name} is ${isRemoved ? "removed" : "there"}`,
        task: name as string,
      };
    if (last.kind === "pause task" && paused_ms === null)
      return { what: `${last.id} paused ${name}, which is not`, task: name as string };
    if (last.kind === "resume task" && paused_ms !== null)
      return { what: `${last.id} resumed ${name}, which is paused`, task: name as string };
  }
  return undefined;
}
