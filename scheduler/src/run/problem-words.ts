/**
 * The words of a refusal, if it comes from a Carillon server: RFC 9457. A proxy in between may answer anything, and null is JSON too. An
 * empty word counts as absent.
 */
export function problemWords(text: string): { code?: string; detail?: string; hint?: string; path?: string } {
  let said: unknown;
  try {
    said = JSON.parse(text);
  } catch {
    // Not an answer of a Carillon server but, say, a proxy's page. Only its status is known.
  }
  const words = Object.entries((said ?? {}) as object).filter(
    ([name, word]) =>
      ["code", "detail", "hint", "path"].includes(name) && typeof word === "string" && word.trim() !== "",
  );
  return Object.fromEntries(words);
}
