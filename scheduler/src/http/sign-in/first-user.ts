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
  /** A password, or "file:PATH". */
  given: string | null;
  checkPassword: PasswordCheck;
  /** Writes to the terminal from which this process was started by hand; null: it has no terminal. */
  terminal: ((text: string) => void) | null;
}

/**
 * Creates the first user of a cluster without users. There is no default password, and no password is written to a log, because logs are
 * copied to places where many people read them.
 * no users × a password was given → `admin` with that password; × this process has a terminal → `admin` with a random password, shown there
 * once; × neither → no user is created, and the log says how to create one. If several nodes start at once, only one creates the user. A
 * lost reply creates no second user, because the same request is repeated. The given password is not read if there are users, so its file
 * may be gone by then.
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

/** The password: `given` itself, or the content of the file that `given` names. @throws FILE_INVALID, SECRET_KEY_OPEN */
export const passwordIn = (given: string): string =>
  given.startsWith("file:") ? readPrivate({ ...file, path: given.slice("file:".length) }).trim() : given;
