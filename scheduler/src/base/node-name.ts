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

/** A random name for a process without one. The store refuses a name that is in use; the process then tries another. */
export function madeName(): string {
  const bytes = randomBytes(3);
  return `${bells[(bytes[0] as number) % bells.length]}-${bytes.subarray(1).toString("hex")}`;
}
