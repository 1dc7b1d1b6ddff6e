/**
 * Reads the text of an error response if it comes from a Carillon server (RFC 9457). A proxy in between may answer anything, and null is
 * JSON too. An empty text counts as absent.
 */
export function problemWords(text: string): { code?: string; detail?: string; hint?: string; path?: string } {
  let said: unknown;
  try {
    said = JSON.parse(text);
  } catch {
    // Not the answer of a Carillon server but, for example, a proxy's page; only its status is known.
  }
  const words = Object.entries((said ?? {}) as object).filter(
    ([name, word]) =>
      ["code", "detail", "hint", "path"].includes(name) && typeof word === "string" && word.trim() !== "",
  );
  return Object.fromEntries(words);
}
