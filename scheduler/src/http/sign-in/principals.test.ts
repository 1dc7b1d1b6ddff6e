import { expect, test } from "vitest";
import { VirtualClock } from "../../../test/support/virtual-clock.ts";
import type { AccessStore, Credential } from "../../access/access-store.ts";
import { hashOfSecret, makeSecret, tokenText } from "../../access/worker-key.ts";
import { silentLog } from "../../base/log.ts";
import { Principals } from "./principals.ts";

test("a local lock-out takes effect at once, also for a user whose look-up is in flight", async () => {
  const secret = makeSecret();
  const user = {
    userId: 1,
    name: "ann",
    version: 1,
    role: "viewer" as const,
    grants: [],
    createdMs: 0,
    createdBy: "test",
    provided: false,
    disabledMs: null as number | null,
    temporary: false,
    secondFactorMs: null,
  };
  const answers: (() => void)[] = [];
  const store = {
    signInsOf: (hashes: Buffer[]) => {
      const found: (Credential | null)[] = hashes.map((hash) =>
        hash.equals(hashOfSecret(secret))
          ? { user: { ...user }, begunMs: 0, expiresMs: 9e12, isProven: false, token: null }
          : null,
      );
      return new Promise((resolve) => answers.push(() => resolve(found)));
    },
  } as unknown as AccessStore;
  const principals = new Principals(store, new VirtualClock(0), () => 0, silentLog, 14_400_000);
  const ask = async () => {
    const asked = principals.ofSignIn(secret, "10.0.0.1", false);
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

test("a session's use is written at most once a minute, and not for a continuing stream", async () => {
  const clock = new VirtualClock(0);
  const user = {
    userId: 1,
    name: "ann",
    role: "viewer",
    grants: [],
    disabledMs: null,
  } as unknown as Credential["user"];
  let seen = 0;
  const store = {
    signInsOf: async () => [{ user, expiresMs: 9e12, token: null }],
    signInsSeen: async () => void seen++,
  } as unknown as AccessStore;
  const principals = new Principals(store, clock, () => 0, silentLog, 14_400_000);
  const asks = async (uses: boolean) => {
    await principals.ofSignIn(secret, "10.0.0.1", uses);
    clock.advance(1_000);
  };
  const secret = makeSecret();
  await asks(false);
  expect(seen).toBe(0);
  for (let second = 0; second < 59; second++) await asks(true);
  expect(seen).toBe(1);
  clock.advance(2_000);
  await asks(true);
  expect(seen).toBe(2);
  await asks(false);
  expect(seen).toBe(2);
});

test("the reads of a page whose sign-in has ended count as one failure, and a repetition costs no query", async () => {
  const clock = new VirtualClock(0);
  let queries = 0;
  const store = {
    signInsOf: async (hashes: Buffer[]) => {
      queries++;
      return hashes.map(() => null);
    },
    tokensOf: async (tokenIds: number[]) => tokenIds.map(() => null),
  } as unknown as AccessStore;
  const principals = new Principals(store, clock, () => 0, silentLog, 14_400_000);
  const read = (secret: string) =>
    principals.ofSignIn(secret, "10.0.0.1", true).then(
      () => "let in",
      ({ code }) => code,
    );
  const load = (secret: string) => Promise.all(Array.from({ length: 11 }, () => read(secret)));
  const ended = makeSecret();
  for (let loads = 0; loads < 5; loads++) expect(new Set(await load(ended))).toEqual(new Set(["SIGN_IN_NEEDED"]));
  expect(queries).toBe(1);
  // Different credentials still count one by one.
  for (let n = 0; n < 18; n++) await read(makeSecret());
  const wrong = (text: string) => expect(principals.ofToken(text, "10.0.0.1")).rejects;
  await wrong(tokenText(7, makeSecret())).toMatchObject({ code: "TOO_MANY_ATTEMPTS" });
  clock.advance(60_000);
  expect(await read(ended)).toBe("SIGN_IN_NEEDED");
  expect(queries).toBe(20);
});
