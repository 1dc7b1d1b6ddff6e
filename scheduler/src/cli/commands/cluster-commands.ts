import { late } from "../late.ts";
import { type CommandParts, coordinationOption, wholeNumber } from "./parts.ts";

const doctor = late(() => import("../nodes/doctor.ts"), "doctor");
const listNodes = late(() => import("../nodes/nodes.ts"), "listNodes");

export function addCluster({ program, add, doing, terminal }: CommandParts): void {
  coordinationOption(
    add(
      program,
      "doctor",
      "Look for what is wrong with this machine, the store and the cluster, and say what to do.",
      "carillon doctor --store postgres://db.example/app",
    ),
  ).action(doing((_, options: Parameters<typeof doctor>[0]) => doctor(options, terminal)));
  add(program, "nodes", "See who takes part, who leads, and why leadership changed.", "carillon nodes")
    .option("--terms <N>", "the last terms of leadership", wholeNumber(0, 1_000), 10)
    .action(doing((_, options: Parameters<typeof listNodes>[0]) => listNodes(options, terminal)));
}
