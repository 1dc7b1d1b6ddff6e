import { Option } from "commander";
import { roles } from "../../access/access.ts";
import { late } from "../late.ts";
import { type CommandParts, collect, wholeNumber } from "./parts.ts";

const createKey = late(() => import("../access/keys.ts"), "createKey");
const listKeys = late(() => import("../access/keys.ts"), "listKeys");
const showKey = late(() => import("../access/keys.ts"), "showKey");
const revokeKey = late(() => import("../access/keys.ts"), "revokeKey");
const limitGroup = late(() => import("../tasks/groups.ts"), "limitGroup");
const listGroups = late(() => import("../tasks/groups.ts"), "listGroups");
const listQuotas = late(() => import("../access/quotas.ts"), "listQuotas");
const setQuota = late(() => import("../access/quotas.ts"), "setQuota");
const listSignIns = late(() => import("../access/users.ts"), "listSignIns");
const endSignIns = late(() => import("../access/users.ts"), "endSignIns");
const resetSecondFactor = late(() => import("../access/users.ts"), "resetSecondFactor");
const createUser = late(() => import("../access/users.ts"), "createUser");
const listUsers = late(() => import("../access/users.ts"), "listUsers");
const showUser = late(() => import("../access/users.ts"), "showUser");
const removeUser = late(() => import("../access/users.ts"), "removeUser");
const setPassword = late(() => import("../access/users.ts"), "setPassword");

/** Adds the commands for worker keys and users, for groups of workers and their limits, and for quotas. */
export function addAccess({
  add,
  family,
  doing,
  terminal,
}: Pick<CommandParts, "add" | "family" | "doing" | "terminal">): void {
  const keys = family("keys", "Let workers in that reach the cluster by HTTP, and lock them out.");
  add(keys, "create <name>", "Make a worker key. It is shown once.", "carillon keys create reports --group reports")
    .option("--group <NAME>", "let it run tasks of this group; may be repeated (default: default)", collect)
    .option("--expires <DURATION>", "refuse it after this time, such as 90d (default: it does not expire)")
    .action(doing(([name = ""], options: Parameters<typeof createKey>[1]) => createKey(name, options, terminal)));
  add(keys, "list", "List the worker keys: whose they are, not what they are.", "carillon keys list").action(
    doing((_, options) => listKeys(options, terminal)),
  );
  add(keys, "show <name>", "Show one worker key: whose it is, not what it is.", "carillon keys show reports").action(
    doing(([name = ""], options) => showKey(name, options, terminal)),
  );
  add(
    keys,
    "revoke <name>",
    "Lock a key's workers out; what they run is taken back.",
    "carillon keys revoke reports",
  ).action(doing(([name = ""], options) => revokeKey(name, options, terminal)));

  const groups = family("groups", "See what each group of workers has to do, and limit how much it does at once.");
  add(groups, "list", "List the groups: tasks, workers, runs at once and what waits.", "carillon groups list").action(
    doing((_, options) => listGroups(options, terminal)),
  );
  add(
    groups,
    "limit <name> <runs>",
    "Run at most so many of a group at once, or none: no limit.",
    "carillon groups limit gpu 4",
  )
    .option("--reason <TEXT>", "kept with the change")
    .action(
      doing(([name = "", runs = ""], options: Parameters<typeof limitGroup>[2]) =>
        limitGroup(name, runs, options, terminal),
      ),
    );

  const quotas = family("quotas", "Say how much namespaces, users and worker keys may take.");
  add(quotas, "list", "List the quotas, by kind and name.", "carillon quotas list").action(
    doing((_, options) => listQuotas(options, terminal)),
  );
  add(
    quotas,
    "set <kind> <name>",
    "Let a namespace, a user or a key take so much and no more; * is each without a quota of its own. What is left out has no limit.",
    "carillon quotas set namespace billing --enqueues 600 --waiting 100000",
  )
    .option("--enqueues <RUNS>", "runs that it enqueues in a minute, by each server; or none")
    .option("--waiting <RUNS>", "of a namespace: runs that no worker has; or none")
    .option("--bytes <BYTES>", "of a namespace: what the payloads of these take in the store; or none")
    .option("--history <BYTES>", "of a namespace: what the history of its runs takes in the store; or none")
    .option("--streams <STREAMS>", "of a user: event streams from each server; or none")
    .option("--sessions <SESSIONS>", "of a worker key: live sessions; or none")
    .option("--reason <TEXT>", "kept with the change")
    .action(
      doing(([kind = "", name = ""], options: Parameters<typeof setQuota>[2]) =>
        setQuota(kind, name, options, terminal),
      ),
    );

  const users = family("users", "Say who may sign in to the HTTP API, and as what.");
  add(users, "create <name>", "Make a user. The password is shown once.", "carillon users create ann --role operator")
    .addOption(new Option("--role <ROLE>", "what the user may").choices(roles).default("viewer"))
    .option("--in <NAMESPACE...>", "in these namespaces only")
    .option("--reason <TEXT>", "why, for the audit")
    .action(doing(([name = ""], options: Parameters<typeof createUser>[1]) => createUser(name, options, terminal)));
  add(users, "list", "List the users.", "carillon users list").action(
    doing((_, options) => listUsers(options, terminal)),
  );
  add(
    users,
    "show <name>",
    "Show one user: roles, and whether the user may sign in.",
    "carillon users show ann",
  ).action(doing(([name = ""], options) => showUser(name, options, terminal)));
  add(
    users,
    "password <name>",
    "Give a user a new password, shown once; every sign-in of the user ends.",
    "carillon users password admin",
  ).action(doing(([name = ""], options) => setPassword(name, options, terminal)));
  add(
    users,
    "sign-ins <name>",
    "List in which browsers a user is signed in: since when, from where, last used.",
    "carillon users sign-ins ann",
  ).action(doing(([name = ""], options: Parameters<typeof listSignIns>[1]) => listSignIns(name, options, terminal)));
  add(
    users,
    "sign-out <name>",
    "End every sign-in of a user, or one. The user may sign in again; tokens stay.",
    "carillon users sign-out ann --sign-in 12",
  )
    .option("--sign-in <N>", "this one alone, by its number in the list", wholeNumber(1, Number.MAX_SAFE_INTEGER))
    .option("--reason <TEXT>", "why, for the audit")
    .action(doing(([name = ""], options: Parameters<typeof endSignIns>[1]) => endSignIns(name, options, terminal)));
  add(
    users,
    "reset-second-factor <name>",
    "Remove a user's second factor, whose device and recovery codes are lost.",
    "carillon users reset-second-factor ann",
  )
    .option("--reason <TEXT>", "why, for the audit")
    .action(
      doing(([name = ""], options: Parameters<typeof resetSecondFactor>[1]) =>
        resetSecondFactor(name, options, terminal),
      ),
    );
  add(users, "remove <name>", "Remove a user with every sign-in and token.", "carillon users remove ann")
    .option("--reason <TEXT>", "why, for the audit")
    .action(doing(([name = ""], options: Parameters<typeof removeUser>[1]) => removeUser(name, options, terminal)));
}
