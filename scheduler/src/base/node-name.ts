import { randomBytes } from "node:crypto";

const bells = [
  "angelus",
  "bourdon",
  "celesta",
  "dorian",
  "gabriel",
  "hemony",
  "maria",
  "pummerin",
  "salvator",
  "tenor",
  "treble",
  "zygmunt",
];

/**
 * Generates a name for a process without a configured one. If the store refuses the name because it is in use, the process tries another.
 */
export function madeName(): string {
  const bytes = randomBytes(3);
  return `${bells[(bytes[0] as number) % bells.length]}-${bytes.subarray(1).toString("hex")}`;
}
