/** Derives form fields from the table of task options, for options with a single value. */
import {
  type OptionName,
  type OptionRow,
  optionRows,
  type Shape,
  type TaskDefinition,
  taskOptions,
  usualWritten,
} from "carillon/task";

/** Options with hand-written fields, because they consist of several values or their fields depend on each other. */
export const drawnOptions: readonly OptionName[] = [
  "schedule",
  "retry",
  "overlap",
  "misfire",
  "calendar",
  "blackout",
  "route",
  "labels",
];

const isPlain = ({ is }: Shape) =>
  is === "duration" || is === "count" || is === "choice" || is === "text" || is === "flag";
const editable = optionRows.filter(([option, row]) => row.editable && !drawnOptions.includes(option));

/** The options with a generated field, whose control depends on the option's shape. */
export const plainOptions = editable.filter(([, { kind }]) => isPlain(kind.shape)).map(([option]) => option);
/** The options that the form edits as JSON. */
export const restOptions = editable.filter(([, { kind }]) => !isPlain(kind.shape)).map(([option]) => option);

export const rowOf = (option: OptionName): OptionRow => taskOptions[option];

/** A string, number or boolean; "" if the option is not set. */
export type PlainValue = string | number | boolean;

const usualValue = (row: OptionRow) => (usualWritten(row) ?? "") as PlainValue;

export const plainValues = (definition: TaskDefinition): Record<string, PlainValue> =>
  Object.fromEntries(
    plainOptions.map((option) => {
      const row = rowOf(option);
      const kept = definition[row.part];
      return [option, kept === undefined || kept === null ? usualValue(row) : (row.kind.write(kept) as PlainValue)];
    }),
  );

/**
 * Converts a field's value into the option's value. An undefined value becomes the option's default; an empty text becomes null if the
 * option is nullable.
 */
export function plainGiven(option: OptionName, value: PlainValue | undefined): PlainValue | null {
  const row = rowOf(option);
  const given = typeof value === "string" && row.kind.shape.is === "duration" ? value.trim() : value;
  if (given === undefined) return usualValue(row);
  return given === "" && row.nullable ? null : given;
}
