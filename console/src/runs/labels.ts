/** Labels of runs as text, as in the list's field and in the page's address: "customer=42, region=eu". */

const partsOf = (text: string): string[] => text.split(",").filter((part) => part.trim() !== "");

/** False if a part of the text is not a name=value pair. */
export const isLabels = (text: string): boolean => partsOf(text).every((part) => part.indexOf("=") > 0);

/** Parses labels. A part without "=" becomes a name with an empty value; it is not dropped, because the filter would match more runs. */
export const labelsOf = (text: string | undefined): Record<string, string> =>
  Object.fromEntries(
    partsOf(text ?? "").map((part) => {
      const [name = "", ...value] = part.split("=");
      return [name.trim(), value.join("=").trim()];
    }),
  );

/** The labels in the form of the API's list. */
export const labelTexts = (text: string | undefined): string[] =>
  Object.entries(labelsOf(text)).map(([name, value]) => `${name}:${value}`);

export const labelsText = (labels: Readonly<Record<string, string>>): string =>
  Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join(", ");
