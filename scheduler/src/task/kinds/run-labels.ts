/** The labels of runs, by which runs are found. They differ from the labels of workers, which decide which tasks a worker may run. */
import { shownValue } from "../../base/json.ts";
import { limits } from "../../base/limits.ts";
import { inner, isObject, type Kind, wrong } from "./kinds.ts";

export type RunLabels = Readonly<Record<string, string>>;

const namePattern = /^[A-Za-z0-9][A-Za-z0-9._/-]*$/;
const { runLabels: most, runLabelNameLength: longestName, runLabelLength: longest } = limits;

export const runLabelsKind: Kind<Record<string, string>> = {
  shape: { is: "texts" },
  hint: `Give at most ${most} texts of at most ${longest} characters by name, such as { customer: "42" }; a name has 1 to ${longestName} letters, digits and . _ / -, the first a letter or digit.`,
  read(given, place) {
    if (!isObject(given)) throw wrong(place, ` cannot be ${shownValue(given)}: it must be an object`, this.hint);
    const entries = Object.entries(given);
    if (entries.length > most) throw wrong(place, ` has ${entries.length} labels`, this.hint);
    for (const [name, value] of entries) {
      if (name.length > longestName || !namePattern.test(name))
        throw wrong(place, ` cannot have a label called ${shownValue(name)}`, this.hint);
      const at = inner(place, name);
      if (typeof value !== "string") throw wrong(at, ` cannot be ${shownValue(value)}: it must be a text`, this.hint);
      if (value.length > longest) throw wrong(at, ` has ${value.length} characters`, this.hint);
      if (value.includes("\0")) throw wrong(at, " has a NUL in it", this.hint);
    }
    return Object.fromEntries(entries) as Record<string, string>;
  },
  write: (kept) => kept,
};

/** The row of `runLabels` in the table of task options. */
export const runLabelsRow = {
  part: "runLabels",
  kind: runLabelsKind,
  usual: {},
  isAbsent: true,
  description: "Labels that all its runs have, those of its slots too: lists of runs can be narrowed to them.",
  since: "0.1.0",
  editable: true,
  example: { team: "billing" },
} as const;
