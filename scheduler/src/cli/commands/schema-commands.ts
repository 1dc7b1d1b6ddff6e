import { late } from "../late.ts";
import type { MigrateOptions } from "../nodes/migrate.ts";
import type { CommonOptions } from "../store-choice.ts";
import { type CommandParts, notEmpty, wholeNumber } from "./parts.ts";

const migrateStore = late(() => import("../nodes/migrate.ts"), "migrateStore");
const restored = late(() => import("../nodes/migrate.ts"), "restored");

const dump = late(() => import("../nodes/move-store.ts"), "dump");
const load = late(() => import("../nodes/move-store.ts"), "load");

const adoptClock = late(() => import("../nodes/clock.ts"), "adoptClock");
const replanClock = late(() => import("../nodes/clock.ts"), "replanClock");

export function addSchemaCommands({
  add,
  family,
  doing,
  program,
  terminal,
}: Pick<CommandParts, "add" | "family" | "doing" | "terminal" | "program">): void {
  add(
    program,
    "migrate",
    "Bring the store's schema to this version, and make partitions ahead; or show what that would do.",
    "carillon migrate --plan",
  )
    .option("--plan", "only show what would be done; exit with 2 when there is something")
    .option("--wait", "change nothing, and wait until somebody else has: for what starts beside the step that migrates")
    .option(
      "--role <NAME>",
      "also let this role do the work, and nothing else: for processes that do not own the schema",
      notEmpty,
    )
    .option("--days <N>", "make the partitions of history for so many days ahead (default 14)", wholeNumber(7, 365))
    .action(doing((_, options: MigrateOptions) => migrateStore(options, terminal)));
  add(
    program,
    "restored",
    "After a restore and before any node starts: go on with numbers that were never given out.",
    `carillon restored --reason "the disk of db-1"`,
  )
    .option("--reason <TEXT>", "why, for the audit")
    .action(doing((_, options: CommonOptions & { reason?: string }) => restored(options, terminal)));
  const store = family("store", "Move a whole store: embedded or server, and across versions of PostgreSQL.");
  add(
    store,
    "dump <file>",
    "Write all that the store has at one moment to a file. Nobody is stopped.",
    "carillon store dump carillon.dump --directory .carillon",
  ).action(doing(([file = ""], options: CommonOptions) => dump(file, options, terminal)));
  add(
    store,
    "load <file>",
    "Make the store of such a file in a schema that has nothing in it, before any node starts there.",
    "carillon store load carillon.dump --store postgres://db.example/app",
  )
    .option("--reason <TEXT>", "why, for the audit")
    .action(doing(([file = ""], options: CommonOptions & { reason?: string }) => load(file, options, terminal)));
  const clock = family("clock", "Decide about the store's clock after it stepped.");
  add(
    clock,
    "adopt",
    "After a step of the store's clock: take its new time for cluster time. Slots that are skipped by that are missed.",
    `carillon clock adopt --reason "db-1 was two hours behind until today"`,
  )
    .option("--reason <TEXT>", "why, for the audit")
    .action(doing((_, options: CommonOptions & { reason?: string }) => adoptClock(options, terminal)));
  add(
    clock,
    "replan",
    "After cluster time went back: plan tasks from now on. What has run does not run again; what was missed ahead of now runs.",
    `carillon clock replan --reason "the clock of db-1 was a day ahead until today"`,
  )
    .option("--reason <TEXT>", "why, for the audit")
    .action(doing((_, options: CommonOptions & { reason?: string }) => replanClock(options, terminal)));
}
