/** How a value that a codec has encoded stands in the store: an object with this one field, a text. */
export const encodedField = "carillon:encoded";
/** The same of a value that is kept outside the store. */
export const storedField = "carillon:stored";

/** The codec's text; undefined: no codec has encoded the value. */
export const encodedText = (value: unknown): string | undefined => only(value, encodedField);

/** Its key in the payload store; undefined: the value is here. */
export const storedKey = (value: unknown): string | undefined => only(value, storedField);

function only(value: unknown, field: string): string | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const text = (value as Record<string, unknown>)[field];
  return typeof text === "string" && Object.keys(value).length === 1 ? text : undefined;
}
