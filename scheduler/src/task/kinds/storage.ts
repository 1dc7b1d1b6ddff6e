/** The options `history` (which ended runs the store keeps) and `durability` (whether an enqueue waits for the store's disk). */
import { choice } from "./kinds.ts";

export const historyRow = {
  part: "history",
  kind: choice(["all", "failures"]),
  usual: "all",
  isAbsent: true,
  description: "Which ended runs are kept; with `failures`, successful runs are only counted.",
  since: "0.1.0",
  editable: true,
  example: "failures",
} as const;

export const durabilities = ["full", "relaxed"] as const;

export const durabilityRow = {
  part: "durability",
  kind: choice(durabilities),
  usual: "full",
  isAbsent: true,
  description:
    "Whether an enqueue waits until its run is on the store's disk; with `relaxed`, a crash of the server may lose the last ones.",
  since: "0.1.0",
  editable: true,
  example: "relaxed",
} as const;
