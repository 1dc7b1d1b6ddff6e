import { readFileSync } from "node:fs";
import { CarillonError, messageOf } from "../errors.ts";
import { SecretKeys } from "../secret-keys.ts";

/** From the option, else from the environment. @throws OPTION_INVALID, FILE_INVALID */
export function readSecretKeys(given: string | string[] | undefined): SecretKeys {
  const texts = given === undefined ? (process.env.CARILLON_SECRET_KEYS ?? "").split(",") : [given].flat();
  return new SecretKeys(texts.flatMap(keysOf));
}

function keysOf(given: string): string[] {
  const text = given.trim();
  if (!text.startsWith("file:")) return text === "" ? [] : [text];
  const path = text.slice("file:".length);
  try {
    const lines = readFileSync(path, "utf8").split("\n");
    return lines.map((line) => line.trim()).filter((line) => line !== "" && !line.startsWith("#"));
  } catch (cause) {
    throw new CarillonError("FILE_INVALID", `the keys for secrets cannot be read from ${path}: ${messageOf(cause)}`, {
      hint: "Give the path of a file with one key a line; `carillon secrets key` makes one.",
      cause,
    });
  }
}
