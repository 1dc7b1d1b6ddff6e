/** The stored form of a value that a codec has encoded is an object with this field only, whose value is a string. */
export const encodedField = "carillon:encoded";
/**
 * The stored form of a value outside the store is an object with this field only, whose string is the value's key in the payload
 * store.
 */
export const storedField = "carillon:stored";

/** Returns the text that the codec made; undefined if the value is not encoded. */
export const encodedText = (value: unknown): string | undefined => only(value, encodedField);

/** Returns the value's key in the payload store; undefined if the value itself is present. */
export const storedKey = (value: unknown): string | undefined => only(value, storedField);

function only(value: unknown, field: string): string | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const text = (value as Record<string, unknown>)[field];
  return typeof text === "string" && Object.keys(value).length === 1 ? text : undefined;
}
