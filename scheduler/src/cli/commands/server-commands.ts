import { Argument, Option } from "commander";
import { late, withPackage } from "../late.ts";
import type { CommandParts } from "./parts.ts";

const login = late(() => import("../login.ts"), "login");
const logout = late(() => import("../login.ts"), "logout");
const listProfiles = late(() => import("../login.ts"), "listProfiles");
const completionScript = late(() => import("../complete.ts"), "completionScript");
const top = late(() => import("../screen/top.ts"), "top");
const checkConfig = late(() => import("../config/config-check.ts"), "checkConfig");
const serveMcp = late(
  withPackage("@modelcontextprotocol/server", () => import("../mcp/serve.ts")),
  "serveMcp",
);
const useProfile = late(() => import("../login.ts"), "useProfile");

/** Adds the commands for the servers at which the user has signed in. */
export function addProfiles({
  add,
  family,
  doing,
  program,
  terminal,
}: Pick<CommandParts, "add" | "family" | "doing" | "terminal" | "program">): void {
  add(
    program,
    "login <url>",
    "Sign in at a server; commands then talk to it where nothing nearer is named.",
    "carillon login https://carillon.example --profile prod",
  )
    .option("--user <NAME>", "who signs in; the password is asked for, or read from standard input")
    .option("--with-token", "read a token from standard input instead, and keep it")
    .option("--code <CODE>", "the code of the second factor, or a recovery code; else it is asked for")
    .option("--expires <DURATION>", "how long the token that is made holds, such as 8h (default: 90 days)")
    .action(doing(([url = ""], options: Parameters<typeof login>[1]) => login(url, options, terminal)));
  add(
    program,
    "logout",
    "Sign out of the profile in use, or of --profile: its token ends, and it is forgotten.",
    "carillon logout --profile prod",
  ).action(doing((_, options) => logout(options, terminal)));
  const profiles = family("profiles", "See the servers that you have signed in to, and choose one.");
  add(profiles, "list", "List the profiles (also without list).", "carillon profiles list").action(
    doing((_, options) => listProfiles(options, terminal)),
  );
  add(profiles, "use <name>", "Talk to this one from now on.", "carillon profiles use prod").action(
    doing(([name = ""]) => useProfile(name, terminal)),
  );
  add(
    family("config", "See what the command line and its processes are set to, and by whom."),
    "check",
    "Show each setting, where it came from, and what is wrong with it.",
    "carillon config check --json",
  ).action(
    doing((_, options: Parameters<typeof checkConfig>[0]) => checkConfig(options, terminal), { configured: false }),
  );
  add(
    program,
    "top",
    "Watch the whole cluster: whether it is on time, what runs, waits, fails and fires next. q ends it.",
    "carillon top --sort late",
  )
    .option("--every <DURATION>", "look this often", "2s")
    .addOption(
      new Option("--sort <BY>", "tasks by this first; keys change it")
        .choices(["next", "late", "failed", "running", "name"])
        .default("next"),
    )
    .action(doing((_, options: Parameters<typeof top>[0]) => top(options, terminal)));
  add(
    program,
    "mcp",
    "Serve the Model Context Protocol on standard input and output, with the rights of the token.",
    "carillon mcp --profile prod --read-only",
  )
    .option("--read-only", "leave out the tools that act")
    // Reserve standard output before the configuration file is loaded, because that file may be a program that prints something.
    .hook("preAction", async () => void (await import("../mcp/standard-output.ts")).takeStandardOutput())
    .action(doing((_, options: Parameters<typeof serveMcp>[0]) => serveMcp(options, terminal)));
  program
    .command("completion")
    .description("Print what makes a shell complete commands, options and the names of tasks.")
    .addArgument(new Argument("<shell>", "the shell").choices(["bash", "zsh", "fish"]))
    .addHelpText("after", `\nExample, in ~/.bashrc:\n  eval "$(carillon completion bash)"`)
    .action(doing(([shell = ""]) => completionScript(shell, terminal)));
  profiles.action(doing((_, options) => listProfiles(options, terminal)));
}
