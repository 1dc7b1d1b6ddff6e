import { CarillonError } from "../base/errors.ts";

/** Parses labels in the form of queries, "customer:42"; the name ends at the first colon. @throws OPTION_INVALID for a repeated name */
export function labelsOfTexts(texts: readonly string[]): Record<string, string> {
  const pairs = texts.map((text): [string, string] => {
    const colon = text.indexOf(":");
    return [text.slice(0, colon), text.slice(colon + 1)];
  });
  return labelsOfPairs(pairs, "label");
}

/** Converts name-value pairs to labels. @param path the option's name for the error @throws OPTION_INVALID for a repeated name */
export function labelsOfPairs(pairs: readonly [string, string][], path: string): Record<string, string> {
  const labels = new Map(pairs);
  if (labels.size === pairs.length) return Object.fromEntries(labels);
  const [twice] = pairs.find(([name], at) => pairs.findIndex(([other]) => other === name) < at) ?? [""];
  throw new CarillonError("OPTION_INVALID", `${path}: ${twice} was given twice`, {
    path,
    hint: "A run has one value of each label.",
  });
}

export const textsOfLabels = (labels: Readonly<Record<string, string>>): string[] =>
  Object.entries(labels).map(([name, value]) => `${name}:${value}`);
