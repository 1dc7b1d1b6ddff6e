import type { AccessStore } from "../access-store.ts";
import type { Log } from "../log.ts";
import { hashPassword, madePassword } from "../password.ts";

const firstUser = "admin";

/**
 * A cluster that nobody can sign in to gets one admin with a password of chance, told once, by whichever node makes it. There is
 * no password that every install has.
 */
export async function makeFirstUser(store: AccessStore, nowMs: number, log: Log): Promise<void> {
  if ((await store.users("", 1)).length > 0) return;
  const password = madePassword();
  const made = await store.createFirst({ name: firstUser, hash: await hashPassword(password) }, nowMs);
  if (made)
    log.warn(
      { user: firstUser },
      `first start: sign in as ${firstUser} with the password ${password} and change it; it is told this once`,
    );
}
