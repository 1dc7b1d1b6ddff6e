/** Labels of runs as text, as in the list's field and in the page's address: "customer=42, region=eu". */

const partsOf = (text: string): string[] => text.split(",").filter((part) => part.trim() !== "");

/** False if a part of the text is not a name=value pair, or two have the same name. */
export const isLabels = (text: string): boolean => {
  const names = partsOf(text).map((part) => part.slice(0, Math.max(0, part.indexOf("="))).trim());
  return !names.includes("") && new Set(names).size === names.length;
};

/** Parses labels. @param text a text for which `isLabels` is true */
export const labelsOf = (text: string | undefined): Record<string, string> =>
  Object.fromEntries(
    partsOf(text ?? "").map((part) => {
      const [name = "", ...value] = part.split("=");
      return [name.trim(), value.join("=").trim()];
    }),
  );

/** The labels in the form of the API's list. The server refuses what is no label, so that a mistyped address does not list other runs. */
export const labelTexts = (text = ""): string[] =>
  isLabels(text) ? Object.entries(labelsOf(text)).map(([name, value]) => `${name}:${value}`) : [text];

export const labelsText = (labels: Readonly<Record<string, string>>): string =>
  Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join(", ");
