import type { Shape } from "../../task/kinds/kinds.ts";
import { type OptionRow, optionRows } from "../../task/options.ts";
import { scheduleOptions } from "../../task/schedule-of.ts";

/** True for shapes whose values are always given as JSON; for other shapes only a text that starts with { is JSON. */
export const isWrittenAsJson = ({ is }: Shape): boolean =>
  is === "json" || is === "schema" || is === "object" || is === "list" || is === "texts";

/** A remark on the form of an option's value: "JSON" if it is always JSON, and "or none" if it may be null. */
function takes({ words, kind, nullable }: OptionRow): string {
  if (words !== undefined) return words;
  return [isWrittenAsJson(kind.shape) ? "JSON" : "", nullable ? "or none" : ""]
    .filter((word) => word !== "")
    .join(", ");
}

const parts = optionRows
  .filter(([, { editable }]) => editable)
  // The zone of a cron can also be set alone.
  .flatMap(([option, row]) => [
    [option, takes(row)] as const,
    ...(option === "schedule" ? [["zone", ""] as const] : []),
  ]);

/** The options for `tasks schedule --set PART=VALUE`: the schedule and its payload are given separately. */
export const scheduleOptionsToSet = scheduleOptions
  .filter((option) => option !== "schedule" && option !== "slotPayload")
  .join(", ");

/** The parts that `--set PART=VALUE` accepts. */
export const partsToSet = parts.map(([part, words]) => (words === "" ? part : `${part} (${words})`)).join(", ");
