import { late } from "../late.ts";
import { type CommandParts, collectHeader } from "./parts.ts";

const listConsumers = late(() => import("../access/events.ts"), "listConsumers");
const redeliver = late(() => import("../access/events.ts"), "redeliver");
const listHooks = late(() => import("../access/hooks.ts"), "listHooks");
const previewHook = late(() => import("../access/hooks.ts"), "previewHook");
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
    "preview <hook> <body>",
    "Show the run that a request with this body (a JSON file) would enqueue; nothing is enqueued, and no signature checked.",
    "carillon hooks preview github push.json --header x-github-event=push --header x-github-delivery=1",
  )
    .option("--header <NAME=TEXT>", "a header of the request; can be repeated", collectHeader)
    .option("--hook <FILE>", "the hook as this YAML file has it, before it is stored (default: the stored hook)")
    .action(
      doing(([name = "", body = ""], options: Parameters<typeof previewHook>[2]) =>
        previewHook(name, body, options, terminal),
      ),
    );
  add(
    hooks,
    "delete <hook>",
    "Remove an incoming webhook; its requests are refused from then on.",
    "carillon hooks delete github",
  )
    .option("--reason <TEXT>", "why, for the audit")
    .action(doing(([name = ""], options: Parameters<typeof removeHook>[1]) => removeHook(name, options, terminal)));
  addEvents({ add, family, doing, terminal });
}

function addEvents({
  add,
  family,
  doing,
  terminal,
}: Pick<CommandParts, "add" | "family" | "doing" | "terminal">): void {
  const events = family("events", "See who gets events, and deliver them again.");
  add(
    events,
    "list",
    "List the named consumers of events, webhooks of events among them: how far each is, and which delivery fails.",
    "carillon events list",
  ).action(doing((_, options) => listConsumers(options, terminal)));
  add(
    events,
    "redeliver <consumer>",
    "Deliver retained events to a consumer again, from the failing event on or since a time.",
    "carillon events redeliver webhook/billing --since 2h",
  )
    .option(
      "--since <TIME>",
      "all since this time, or within such a span: 2027-03-27T00:00:00Z, 1d (default: from the failing event on)",
    )
    .option("--reason <TEXT>", "why, for the audit")
    .action(doing(([name = ""], options: Parameters<typeof redeliver>[1]) => redeliver(name, options, terminal)));
}
