import { expect, test } from "vitest";
import { VirtualClock } from "../../test/support/virtual-clock.ts";
import type { AccessStore, Credential } from "../access-store.ts";
import { silentLog } from "../log.ts";
import { hashOfSecret, makeSecret } from "../worker-key.ts";
import { Principals } from "./principals.ts";

test("a lock-out here holds at once, also for who was just being looked up when it came", async () => {
  const secret = makeSecret();
  const user = {
    ...{ userId: 1, name: "ann", version: 1, role: "viewer" as const, grants: [], createdMs: 0, createdBy: "test" },
    ...{ provided: false, disabledMs: null as number | null },
  };
  const answers: (() => void)[] = [];
  const store = {
    signInsOf: (hashes: Buffer[]) => {
      const found: (Credential | null)[] = hashes.map((hash) =>
        hash.equals(hashOfSecret(secret)) ? { user: { ...user }, expiresMs: 9e12, token: null } : null,
      );
      return new Promise((resolve) => answers.push(() => resolve(found)));
    },
  } as unknown as AccessStore;
  const principals = new Principals(store, new VirtualClock(0), () => 0, silentLog);
  const ask = async () => {
    const asked = principals.ofSignIn(secret, "10.0.0.1");
    await new Promise((resolve) => setImmediate(resolve));
    return { asked, answer: () => answers.shift()?.() };
  };
  const before = await ask();
  user.disabledMs = 1;
  principals.forget();
  before.answer();
  expect((await before.asked).who.user).toBe("ann");
  const after = await ask();
  after.answer();
  await expect(after.asked).rejects.toMatchObject({ code: "SIGN_IN_NEEDED" });
});
