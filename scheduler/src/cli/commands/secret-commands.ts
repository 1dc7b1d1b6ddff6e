import type { SetOptions } from "../access/secrets.ts";
import { late } from "../late.ts";
import { type CommandParts, collect } from "./parts.ts";

const setSecret = late(() => import("../access/secrets.ts"), "setSecret");
const listSecrets = late(() => import("../access/secrets.ts"), "listSecrets");
const removeSecret = late(() => import("../access/secrets.ts"), "removeSecret");
const rewrapSecrets = late(() => import("../access/secrets.ts"), "rewrapSecrets");
const makeKey = late(() => import("../access/secrets.ts"), "makeKey");

export function addSecrets({
  add,
  family,
  doing,
  terminal,
}: Pick<CommandParts, "add" | "family" | "doing" | "terminal">) {
  const secrets = family("secrets", "Keep values that tasks need and nobody is to read.");
  add(
    secrets,
    "set <name>",
    "Store a secret, or its next version, from standard input.",
    "carillon secrets set bank-token --task settle < token",
  )
    .option(
      "--task <NAME>",
      "let only this task's runs have it; may be repeated (default: as before, at first any)",
      collect,
    )
    .option("--any-task", "let any task's runs have it")
    .option("--reason <TEXT>", "why, for the audit")
    .action(doing(([name = ""], options: SetOptions) => setSecret(name, options, terminal)));
  add(secrets, "list", "List the secrets: what there is, never the values.", "carillon secrets list").action(
    doing((_, options) => listSecrets(options, terminal)),
  );
  add(secrets, "remove <name>", "Destroy a secret's values.", "carillon secrets remove bank-token")
    .option("--reason <TEXT>", "why, for the audit")
    .action(doing(([name = ""], options: SetOptions) => removeSecret(name, options, terminal)));
  add(
    secrets,
    "rewrap",
    "Wrap what older keys wrap by the present key; no value is looked at.",
    "carillon secrets rewrap",
  )
    .option("--reason <TEXT>", "why, for the audit")
    .action(doing((_, options: SetOptions) => rewrapSecrets(options, terminal)));
  add(
    secrets,
    "key",
    "Make a key for secrets, and print it.",
    "carillon secrets key >> /etc/carillon/secret-keys",
  ).action(doing(() => makeKey(terminal)));
}
