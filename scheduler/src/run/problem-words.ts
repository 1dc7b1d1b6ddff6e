/**
 * What a refusal says, where it is one of a server's: RFC 9457. What stands between may answer anything, and null is JSON too.
 * An empty word says nothing.
 */
export function problemWords(text: string): { code?: string; detail?: string; hint?: string; path?: string } {
  let said: unknown;
  try {
    said = JSON.parse(text);
  } catch {
    // Not one of our servers' words: a proxy's page. Its status is all that is known.
  }
  const words = Object.entries((said ?? {}) as object).filter(
    ([name, word]) =>
      ["code", "detail", "hint", "path"].includes(name) && typeof word === "string" && word.trim() !== "",
  );
  return Object.fromEntries(words);
}
