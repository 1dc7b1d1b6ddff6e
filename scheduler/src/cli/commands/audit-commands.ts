import { late } from "../late.ts";
import type { CommonOptions } from "../store-choice.ts";
import { type CommandParts, notEmpty } from "./parts.ts";

const exportAudit = late(() => import("../access/audit.ts"), "exportAudit");
const verifyAudit = late(() => import("../access/audit.ts"), "verifyAudit");
const pruneAudit = late(() => import("../access/audit.ts"), "pruneAudit");

export function addAudit({
  add,
  family,
  doing,
  terminal,
}: Pick<CommandParts, "add" | "family" | "doing" | "terminal">): void {
  const audit = family("audit", "Export the audit log, and check that no row of it was changed or removed.");
  add(
    audit,
    "export",
    "Write all rows with their hashes as lines of JSON, and the head as the last one.",
    "carillon audit export > audit.jsonl",
  ).action(doing((_, options: CommonOptions) => exportAudit(options, terminal)));
  add(
    audit,
    "verify [file]",
    "Check the hash chain of the store, the server or an exported file; exit with 5 where it does not hold.",
    "carillon audit verify audit.jsonl",
  )
    .option(
      "--head <SEQ:HASH>",
      "the chain must have this row with this hash: a head that was kept elsewhere",
      notEmpty,
    )
    .action(doing(([file], options: Parameters<typeof verifyAudit>[1]) => verifyAudit(file, options, terminal)));
  add(
    audit,
    "prune <age>",
    "Remove the rows that are older than this, at least 1d, so that the rest can still be checked.",
    `carillon audit prune 400d --reason "kept for a year"`,
  )
    .option("--reason <TEXT>", "why, for the audit")
    .action(doing(([age = ""], options: Parameters<typeof pruneAudit>[1]) => pruneAudit(age, options, terminal)));
}
