import { principalText, Reach } from "../../access/access.ts";
import type { Change } from "../../base/change.ts";
import { namespaceOf } from "../../base/namespace.ts";
import type { TaskDefinition } from "../../task/task.ts";
import type { Call } from "../call.ts";

export const changeOf = ({ who, nowMs }: Call, reason: string | undefined): Change => ({
  author: who === null ? "nobody" : principalText(who),
  reason: reason ?? "",
  nowMs,
});

/**
 * Checks that the caller may use the groups, calendars and upstream tasks that a change adds to a definition. A group or calendar
 * must belong to the task's namespace, to no namespace (then it is shared by all), or to a namespace to which the caller has
 * access. An upstream task may be in any namespace that the caller may view.
 * @throws ACCESS_DENIED
 */
export function checkUse(
  definition: TaskDefinition,
  before: TaskDefinition | undefined,
  { who, reach }: Pick<Call, "who" | "reach">,
): void {
  if (who === null || reach.namespaces === null) return;
  const there = usedBy(before);
  const { shared, upstream } = usedBy(definition);
  // Names in the previous definition were already checked when they were added.
  const added = (names: string[], had: string[]) => names.filter((name) => !had.includes(name));
  for (const used of added(shared, there.shared))
    if (used.includes("/") && namespaceOf(used) !== namespaceOf(definition.name)) reach.check(used);
  const sees = new Reach(who, "viewer");
  for (const used of added(upstream, there.upstream)) sees.check(used);
}

const usedBy = (definition: TaskDefinition | undefined) => ({
  shared: [definition?.group, definition?.calendar?.name].filter((name) => name !== undefined),
  upstream: definition?.after?.tasks ?? [],
});
