/** The labels of runs as the list's field and its address have them: "customer=42, region=eu". */

const partsOf = (text: string): string[] => text.split(",").filter((part) => part.trim() !== "");

/** False where a part of the text is no pair. */
export const isLabels = (text: string): boolean => partsOf(text).every((part) => part.indexOf("=") > 0);

/** A part of an address that is no pair is a name without a value, which no run has: it must not widen the filter. */
export const labelsOf = (text: string | undefined): Record<string, string> =>
  Object.fromEntries(
    partsOf(text ?? "").map((part) => {
      const [name = "", ...value] = part.split("=");
      return [name.trim(), value.join("=").trim()];
    }),
  );

/** As the API's list takes them. */
export const labelTexts = (text: string | undefined): string[] =>
  Object.entries(labelsOf(text)).map(([name, value]) => `${name}:${value}`);

export const labelsText = (labels: Readonly<Record<string, string>>): string =>
  Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join(", ");
