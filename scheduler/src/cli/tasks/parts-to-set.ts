import type { Shape } from "../../task/kinds/kinds.ts";
import { type OptionRow, optionRows } from "../../task/options.ts";
import { scheduleOptions } from "../../task/schedule-of.ts";

/** A value of the shape is given as JSON; of the others only what begins with { is. */
export const isWrittenAsJson = ({ is }: Shape): boolean =>
  is === "json" || is === "schema" || is === "object" || is === "list" || is === "texts";

/** What an option takes where that is not a text, a number or a duration; what begins with { is JSON anywhere. */
function takes({ words, kind, nullable }: OptionRow): string {
  if (words !== undefined) return words;
  return [isWrittenAsJson(kind.shape) ? "JSON" : "", nullable ? "or none" : ""]
    .filter((word) => word !== "")
    .join(", ");
}

const parts = optionRows
  .filter(([, { editable }]) => editable)
  // The zone of a cron can be set by itself.
  .flatMap(([option, row]) => [
    [option, takes(row)] as const,
    ...(option === "schedule" ? [["zone", ""] as const] : []),
  ]);

/** What `tasks schedule --set PART=VALUE` takes: its schedule and payload are given by themselves. */
export const scheduleOptionsToSet = scheduleOptions
  .filter((option) => option !== "schedule" && option !== "slotPayload")
  .join(", ");

/** What `--set PART=VALUE` takes. */
export const partsToSet = parts.map(([part, words]) => (words === "" ? part : `${part} (${words})`)).join(", ");
