import { alarmAdvice, alarmPlaces } from "../../settings/alarms/alarm-places.ts";
import type { ClusterFacts } from "../../store/postgres/runs/inspect.ts";
import { type Check, good, list, problem, remark, silent } from "./checks.ts";

/** Checks whether some process would send messages about alarms. Returns nothing if no process is live. */
export function checkAlarms({ members, nowMs }: Pick<ClusterFacts, "members" | "nowMs">): Check[] {
  const live = members.filter((one) => !silent(one, nowMs));
  if (live.length === 0) return [];
  const { kind, nodes } = alarmPlaces(live);
  const what = "alarm channels";
  if (kind === "told") return [good(what, "every process that may lead has some")];
  if (kind === "nobody") return [remark(what, "no process has any: nobody is told of failures", alarmAdvice.nobody)];
  if (kind === "partly") return [remark(what, `none in ${list(nodes)}, which may lead`, alarmAdvice.partly)];
  return [problem(what, `only in ${list(nodes)}, and no such process looks for alarms`, alarmAdvice.elsewhere)];
}
