import { Option } from "commander";
import { roles, scopes } from "../../access/access.ts";
import { late } from "../late.ts";
import type { CommandParts } from "./parts.ts";

const createToken = late(() => import("../access/tokens.ts"), "createToken");
const listTokens = late(() => import("../access/tokens.ts"), "listTokens");
const revokeToken = late(() => import("../access/tokens.ts"), "revokeToken");

export function addTokens({
  add,
  family,
  doing,
  terminal,
}: Pick<CommandParts, "add" | "family" | "doing" | "terminal">): void {
  const tokens = family("tokens", "Let programs use the HTTP API and read the metrics, and lock them out.");
  add(
    tokens,
    "create <name>",
    "Make a token of a user for a program. It is shown once.",
    "carillon tokens create scraper --user prometheus --expires 366d",
  )
    .requiredOption("--user <USER>", "whose token it is; it ends with the user")
    .addOption(new Option("--role <ROLE>", "what it may, not above the user's (default: the user's)").choices(roles))
    .addOption(
      new Option("--scope <SCOPE...>", "that alone, such as runs:read (default: all that the role may)").choices(
        scopes,
      ),
    )
    .option("--in <NAMESPACE...>", "in these namespaces only")
    .option("--expires <DURATION>", "refuse it after this time, 366d at most (default: 90d)")
    .option("--reason <TEXT>", "kept with the token")
    .action(doing(([name = ""], options: Parameters<typeof createToken>[1]) => createToken(name, options, terminal)));
  add(tokens, "list", "List the tokens: whose they are, not what they are.", "carillon tokens list").action(
    doing((_, options) => listTokens(options, terminal)),
  );
  add(
    tokens,
    "revoke <name>",
    "Lock a program out, and the tokens that its token made.",
    "carillon tokens revoke scraper --user prometheus",
  )
    .requiredOption("--user <USER>", "whose token it is")
    .option("--reason <TEXT>", "kept with the token")
    .action(doing(([name = ""], options: Parameters<typeof revokeToken>[1]) => revokeToken(name, options, terminal)));
}
