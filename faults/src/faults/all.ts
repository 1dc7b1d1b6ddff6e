import type { Coordination } from "../coordination.ts";
import { hasPrlimit } from "../postgres.ts";
import type { Fault } from "./fault.ts";
import { lineFaults } from "./lines.ts";
import { processFaults } from "./processes.ts";
import { serviceFaults } from "./services.ts";
import { storeFaults } from "./store.ts";
import { workerFaults } from "./workers.ts";

export const allFaults: readonly Fault[] = [
  ...processFaults,
  ...lineFaults,
  ...storeFaults,
  ...serviceFaults,
  ...workerFaults,
];

/** Returns the faults that can be inflicted with this coordination on this machine. */
export function faultsFor(coordination: Coordination): Fault[] {
  return allFaults.filter(({ needs }) => {
    if (needs === undefined) return true;
    if (needs === "prlimit") return hasPrlimit();
    return needs === "service" ? coordination !== "postgres" : needs === coordination;
  });
}
