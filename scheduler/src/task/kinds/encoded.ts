/** How a value that a codec has encoded stands in the store: an object with this one field, a text. */
export const encodedField = "carillon:encoded";

/** The codec's text; undefined: no codec has encoded the value. */
export function encodedText(value: unknown): string | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const text = (value as Record<string, unknown>)[encodedField];
  return typeof text === "string" && Object.keys(value).length === 1 ? text : undefined;
}
