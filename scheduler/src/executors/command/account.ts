import { readFileSync } from "node:fs";
import { userInfo } from "node:os";
import { CarillonError } from "../../base/errors.ts";

/** The operating system account that a command runs as. */
export interface Account {
  name: string;
  home: string;
  /** Set only if the process has to switch to the account; the command then has no supplementary groups. */
  switchTo?: { uid: number; gid: number };
}

/** The account of this process; tests replace it, so that they need not run as root or as an unprivileged user. */
export interface OwnAccount {
  name: string;
  uid: number;
  home: string;
}

export function ownAccount(): OwnAccount {
  const uid = process.geteuid?.() ?? -1;
  try {
    const { username, homedir } = userInfo();
    return { name: username, uid, home: homedir };
  } catch {
    // A container may run under a user id that has no account.
    return { name: String(uid), uid, home: "/" };
  }
}

/**
 * Chooses the account for a command. A command with an account runs as that account or not at all, because the purpose of cron's account
 * field is to limit the command's rights.
 * @param user undefined: the worker's own account
 * @throws COMMAND_NOT_ALLOWED if this process is neither that account nor root, or if the account does not exist
 */
export function accountFor(user: string | undefined, own: OwnAccount, accountsFile = "/etc/passwd"): Account {
  if (user === undefined || user === own.name) return { name: own.name, home: own.home };
  if (own.uid !== 0) {
    throw new CarillonError(
      "COMMAND_NOT_ALLOWED",
      `the command belongs to ${JSON.stringify(user)}; this worker runs as ${own.name}`,
      {
        hint: `Run a worker as ${user} (or root, which can change to it), or take the user out of the task's command.`,
      },
    );
  }
  for (const line of readFileSync(accountsFile, "utf8").split("\n")) {
    const [name, , uid, gid, , home] = line.split(":");
    if (name !== user || !/^\d+$/.test(uid ?? "") || !/^\d+$/.test(gid ?? "")) continue;
    return { name, home: home || "/", switchTo: { uid: Number(uid), gid: Number(gid) } };
  }
  throw new CarillonError(
    "COMMAND_NOT_ALLOWED",
    `the command belongs to ${JSON.stringify(user)}, and this machine has no such account`,
    {
      hint: `Create the account, or run the task where it exists. Only accounts in ${accountsFile} are known.`,
    },
  );
}
