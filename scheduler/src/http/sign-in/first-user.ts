import type { AccessStore } from "../../access/access-store.ts";
import { hashPassword, madePassword, type PasswordCheck } from "../../access/password.ts";
import { readPrivate } from "../../access/secrets/private-file.ts";
import type { Log } from "../../base/log.ts";
import type { UntilAnswered } from "../../base/until-answered.ts";

export const firstUser = "admin";
const file = {
  holds: "the first user's password",
  hint: "Give the path of a file with the password alone in it, or leave adminPassword out.",
};

export interface FirstUserOptions {
  store: AccessStore;
  nowMs: number;
  log: Log;
  untilAnswered: UntilAnswered;
  /** The configured password, or "file:PATH"; null if not configured. */
  given: string | null;
  checkPassword: PasswordCheck;
  /** Writes to the terminal of this process; null if it has none. */
  terminal: ((text: string) => void) | null;
}

/**
 * Creates the first user, `admin`, if the cluster has no users. There is no default password, and no password is written to a log, because
 * many people may read logs. If a password is configured, the user gets that password. Otherwise, if this process has a terminal, the user
 * gets a random temporary password, which is written to the terminal once. Otherwise no user is created, and the log says how to create
 * one. If several nodes start at once, only one creates the user. If the store's answer is lost, the same request is repeated, which
 * creates no second user. The configured password is read only if there are no users, so its file may be deleted later.
 * @throws PASSWORD_WEAK, SECRET_KEY_OPEN, FILE_INVALID
 */
export async function makeFirstUser(options: FirstUserOptions): Promise<void> {
  const { store, nowMs, log, untilAnswered, given, checkPassword, terminal } = options;
  if ((await untilAnswered(() => store.users("", 1))).length > 0) return;
  if (given === null && terminal === null) {
    log.warn(
      {
        hint: `Run \`carillon users create ${firstUser} --role admin\` where the store is, or set CARILLON_ADMIN_PASSWORD.`,
      },
      "nobody can sign in yet: there are no users",
    );
    return;
  }
  const password = given === null ? madePassword() : passwordIn(given);
  if (given !== null) await checkPassword(firstUser, password);
  const user = { name: firstUser, hash: await hashPassword(password), temporary: given === null };
  if (!(await untilAnswered(() => store.createFirst(user, nowMs)))) return;
  if (given !== null) log.info({ user: firstUser }, "first start: the user was made with the password that was given");
  else
    terminal?.(
      `First start: sign in as ${firstUser} with the password ${password}, and choose your own. It is told this once.\n`,
    );
}

/** Returns the configured password: `given`, or the content of the file that `given` names. @throws FILE_INVALID, SECRET_KEY_OPEN */
export const passwordIn = (given: string): string =>
  given.startsWith("file:") ? readPrivate({ ...file, path: given.slice("file:".length) }).trim() : given;
