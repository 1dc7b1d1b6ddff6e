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

/** A name for a process that was given none. The store refuses one that is in use, and another is made. */
export function madeName(): string {
  const bytes = randomBytes(3);
  return `${bells[(bytes[0] as number) % bells.length]}-${bytes.subarray(1).toString("hex")}`;
}
