/**
 * Reads the fields of an error response if it comes from a Carillon server (RFC 9457). Empty texts are left out. Any other
 * response, such as that of a proxy, gives no fields.
 */
export function problemWords(text: string): { code?: string; detail?: string; hint?: string; path?: string } {
  let said: unknown;
  try {
    said = JSON.parse(text);
  } catch {
    // The response is not JSON, for example the page of a proxy, so only its status is known.
  }
  const words = Object.entries((said ?? {}) as object).filter(
    ([name, word]) =>
      ["code", "detail", "hint", "path"].includes(name) && typeof word === "string" && word.trim() !== "",
  );
  return Object.fromEntries(words);
}
