import { late } from "../late.ts";
import type { CommandParts } from "./parts.ts";

const listHooks = late(() => import("../access/hooks.ts"), "listHooks");
const removeHook = late(() => import("../access/hooks.ts"), "removeHook");
const setHook = late(() => import("../access/hooks.ts"), "setHook");
const showHook = late(() => import("../access/hooks.ts"), "showHook");

export function addHooks({
  add,
  family,
  doing,
  terminal,
}: Pick<CommandParts, "add" | "family" | "doing" | "terminal">): void {
  const hooks = family("hooks", "Let other services' webhooks enqueue runs.");
  add(hooks, "list", "List the incoming webhooks.", "carillon hooks list").action(
    doing((_, options) => listHooks(options, terminal)),
  );
  add(hooks, "show <hook>", "Show an incoming webhook.", "carillon hooks show github").action(
    doing(([name = ""], options) => showHook(name, options, terminal)),
  );
  add(
    hooks,
    "set <hook> <file>",
    "Store an incoming webhook, or its next version, as a YAML file has it.",
    "carillon hooks set github github.yaml",
  )
    .option("--reason <TEXT>", "why, for the audit")
    .action(
      doing(([name = "", file = ""], options: Parameters<typeof setHook>[2]) => setHook(name, file, options, terminal)),
    );
  add(
    hooks,
    "delete <hook>",
    "Remove an incoming webhook; its requests are refused from then on.",
    "carillon hooks delete github",
  )
    .option("--reason <TEXT>", "why, for the audit")
    .action(doing(([name = ""], options: Parameters<typeof removeHook>[1]) => removeHook(name, options, terminal)));
}
