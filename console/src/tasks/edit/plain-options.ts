/** Options that are one value, as fields of a form have them, made from the table of task options. */
import {
  type OptionName,
  type OptionRow,
  optionRows,
  type Shape,
  type TaskDefinition,
  taskOptions,
  usualWritten,
} from "carillon/task";

/** These have fields of their own: they are more than one value, or their fields depend on each other. */
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

/** Each has a field by its shape. */
export const plainOptions = editable.filter(([, { kind }]) => isPlain(kind.shape)).map(([option]) => option);
/** The options that the form edits as JSON. */
export const restOptions = editable.filter(([, { kind }]) => !isPlain(kind.shape)).map(([option]) => option);

export const rowOf = (option: OptionName): OptionRow => taskOptions[option];

/** A text, number or truth; "": there is none. */
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

/** The option that a field's value comes to; null: it is taken away. */
export function plainGiven(option: OptionName, value: PlainValue | undefined): PlainValue | null {
  const row = rowOf(option);
  const given = typeof value === "string" && row.kind.shape.is === "duration" ? value.trim() : value;
  if (given === undefined) return usualValue(row);
  return given === "" && row.nullable ? null : given;
}
