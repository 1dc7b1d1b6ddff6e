import { late } from "../late.ts";
import { type CommandParts, coordinationOption, wholeNumber } from "./parts.ts";

const doctor = late(() => import("../nodes/doctor.ts"), "doctor");
const monitor = late(() => import("../nodes/monitor.ts"), "monitor");
const listNodes = late(() => import("../nodes/nodes.ts"), "listNodes");
const drainNode = late(() => import("../nodes/drain.ts"), "drainNode");
const resumeNode = late(() => import("../nodes/drain.ts"), "resumeNode");

export function addCluster({ program, add, family, doing, terminal }: CommandParts): void {
  coordinationOption(
    add(
      program,
      "doctor",
      "Look for what is wrong with this machine, the store and the cluster, and say what to do.",
      "carillon doctor --store postgres://db.example/app",
    ),
  )
    .option("--production", "also check whether the cluster is ready for production")
    .action(doing((_, options: Parameters<typeof doctor>[0]) => doctor(options, terminal)));
  add(
    program,
    "check",
    "Tell a monitor in one line and an exit code (0, 1, 2, 3) whether a node leads and alarms are open.",
    "carillon check --server https://carillon.example.com",
  )
    .option("--task <NAME>", "count only the alarms of this task, and of the cluster")
    .action(doing((_, options: Parameters<typeof monitor>[0]) => monitor(options, terminal)));
  const nodes = family("nodes", "See who takes part and who leads, and drain a node or worker before it is stopped.");
  add(nodes, "list", "List who takes part, who leads, and why leadership changed.", "carillon nodes list", {
    isDefault: true,
  })
    .option("--terms <N>", "the last terms of leadership", wholeNumber(0, 1_000), 10)
    .action(doing((_, options: Parameters<typeof listNodes>[0]) => listNodes(options, terminal)));
  add(
    nodes,
    "drain <name>",
    "Give a node or worker no more runs, also after a restart; what it has begun it ends.",
    "carillon nodes drain worker-3 --wait --timeout 10m",
  )
    .option("--wait", "wait until it has no runs")
    .option("--timeout <DURATION>", "with --wait: wait at most this long, such as 10m")
    .option("--reason <TEXT>", "kept with the change")
    .action(doing(([name = ""], options: Parameters<typeof drainNode>[1]) => drainNode(name, options, terminal)));
  add(nodes, "resume <name>", "Give a drained node or worker runs again.", "carillon nodes resume worker-3")
    .option("--reason <TEXT>", "kept with the change")
    .action(doing(([name = ""], options: Parameters<typeof resumeNode>[1]) => resumeNode(name, options, terminal)));
}
