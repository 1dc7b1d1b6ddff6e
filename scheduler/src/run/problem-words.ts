/**
 * Returns the texts `code`, `detail`, `hint` and `path` of an error response, which a Carillon server sends (RFC 9457). Empty
 * texts are left out. A response without these fields, such as that of a proxy, gives none.
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
