import type { Shape } from "../../task/kinds/kinds.ts";
import { type OptionRow, optionRows } from "../../task/options.ts";
import { scheduleOptions } from "../../task/schedule-of.ts";

/** True for types whose values must be written as JSON; for other types, only text that begins with { or is a number is parsed as JSON. */
export const isWrittenAsJson = ({ is }: Shape): boolean =>
  is === "json" || is === "schema" || is === "object" || is === "list" || is === "texts";

/**
 * Describes how an option's value is written: in the option's own words if it has any; else "JSON" if it must be JSON, and "or none" if
 * it may be null.
 */
function takes({ words, kind, nullable }: OptionRow): string {
  if (words !== undefined) return words;
  return [isWrittenAsJson(kind.shape) ? "JSON" : "", nullable ? "or none" : ""]
    .filter((word) => word !== "")
    .join(", ");
}

const parts = optionRows
  .filter(([, { editable }]) => editable)
  // `zone` is not an option of a task, but --set accepts it to change only the zone of a schedule.
  .flatMap(([option, row]) => [
    [option, takes(row)] as const,
    ...(option === "schedule" ? [["zone", ""] as const] : []),
  ]);

/** The options that `tasks schedule --set PART=VALUE` accepts. The schedule and its payload are left out: they have flags of their own. */
export const scheduleOptionsToSet = scheduleOptions
  .filter((option) => option !== "schedule" && option !== "slotPayload")
  .join(", ");

/** The parts that `--set PART=VALUE` accepts, as text for help and errors. */
export const partsToSet = parts.map(([part, words]) => (words === "" ? part : `${part} (${words})`)).join(", ");
