import { readPrivate } from "./private-file.ts";
import { SecretKeys } from "./secret-keys.ts";

const file = {
  holds: "keys for secrets",
  hint: "Give the path of a file with one key a line; `carillon secrets key` makes one.",
};

/**
 * Reads the keys from the option, or if it is undefined from CARILLON_SECRET_KEYS. Each text is a key, or `file:PATH` of a file with keys.
 * @throws OPTION_INVALID, FILE_INVALID, SECRET_KEY_OPEN
 */
export function readSecretKeys(given: string | string[] | undefined): SecretKeys {
  const texts = given === undefined ? (process.env.CARILLON_SECRET_KEYS ?? "").split(",") : [given].flat();
  return new SecretKeys(texts.flatMap(keysOf));
}

function keysOf(given: string): string[] {
  const text = given.trim();
  if (!text.startsWith("file:")) return text === "" ? [] : [text];
  const lines = readPrivate({ ...file, path: text.slice("file:".length) }).split("\n");
  return lines.map((line) => line.trim()).filter((line) => line !== "" && !line.startsWith("#"));
}
