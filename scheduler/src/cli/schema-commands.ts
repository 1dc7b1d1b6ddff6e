import type { Command } from "commander";
import { late } from "./late.ts";
import type { MigrateOptions } from "./migrate.ts";
import type { CommandParts } from "./operation-commands.ts";
import type { CommonOptions } from "./store-choice.ts";

const migrateStore = late(() => import("./migrate.ts"), "migrateStore");
const restored = late(() => import("./migrate.ts"), "restored");

export function addSchemaCommands({
  add,
  doing,
  program,
  terminal,
}: Pick<CommandParts, "add" | "doing" | "terminal"> & { program: Command }): void {
  add(
    program,
    "migrate",
    "Bring the store's schema to this version, or show what that would do.",
    "carillon migrate --plan",
  )
    .option("--plan", "only show what would be done; exit with 2 when there is something")
    .option("--wait", "change nothing, and wait until somebody else has: for what starts beside the step that migrates")
    .action(doing((_, options: MigrateOptions) => migrateStore(options, terminal)));
  add(
    program,
    "restored",
    "After a restore and before any node starts: go on with numbers that were never given out.",
    `carillon restored --reason "the disk of db-1"`,
  )
    .option("--reason <TEXT>", "why, for the audit")
    .action(doing((_, options: CommonOptions & { reason?: string }) => restored(options, terminal)));
}
