/** The form in which the store keeps a value that a codec has encoded: an object with this one field, a string. */
export const encodedField = "carillon:encoded";
/** The same form for a value that is kept outside the store; the string is its key there. */
export const storedField = "carillon:stored";

/** Returns the codec's text; undefined: no codec has encoded the value. */
export const encodedText = (value: unknown): string | undefined => only(value, encodedField);

/** Returns the value's key in the payload store; undefined: the value itself is present. */
export const storedKey = (value: unknown): string | undefined => only(value, storedField);

function only(value: unknown, field: string): string | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const text = (value as Record<string, unknown>)[field];
  return typeof text === "string" && Object.keys(value).length === 1 ? text : undefined;
}
