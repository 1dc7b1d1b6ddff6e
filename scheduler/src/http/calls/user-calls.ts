import { checkGrants, type Principal, signInUnknown } from "../../access/access.ts";
import { type SignIn, type User, userCalled } from "../../access/access-store.ts";
import { hashPassword, type PasswordCheck } from "../../access/password.ts";
import { hashOfSecret } from "../../access/worker-key.ts";
import { iso, isoTime } from "../../api/run-json.ts";
import type { Store } from "../../store/store.ts";
import { checkName } from "../../task/names.ts";
import type { Call, Some } from "../call.ts";
import type { Principals } from "../sign-in/principals.ts";
import { changeOf } from "./changes.ts";
import { nameCursor, numberCursor, pageOf } from "./pages.ts";

/** Lists a user's grants, including the role for all namespaces as a grant for "*". */
export const grantsOf = ({ role, grants }: Pick<Principal, "role" | "grants">) => [
  ...(role === null ? [] : [{ namespace: "*", role }]),
  ...grants,
];

/** @param own the hash of the secret of the caller's own sign-in; null if the caller uses a token */
export const asSignIn =
  (own: Buffer | null) =>
  ({ signInId, begunMs, seenMs, expiresMs, address, agent, hash }: SignIn) => ({
    signIn: signInId,
    begun: isoTime(begunMs),
    seen: isoTime(seenMs),
    expires: isoTime(expiresMs),
    address,
    agent,
    present: own?.equals(hash) ?? false,
  });

/** The hash of the secret of the caller's sign-in, which is in the cookie; null if the caller uses a token. */
export const ownHash = ({ cookie: { present } }: Call): Buffer | null =>
  present === null ? null : hashOfSecret(present);

const asUser = ({
  name,
  version,
  role,
  grants,
  createdMs,
  createdBy,
  disabledMs,
  provided,
  temporary,
  secondFactorMs,
}: User) => ({
  name,
  role,
  grants: grantsOf({ role, grants }),
  created: isoTime(createdMs),
  createdBy,
  disabled: iso(disabledMs),
  provided,
  temporary,
  secondFactor: iso(secondFactorMs),
  version,
});

export function userCalls(
  store: Store,
  principals: Principals,
  idleMs: number,
  checkPassword: PasswordCheck,
): Some<
  | "listUsers"
  | "createUser"
  | "getUser"
  | "changeUser"
  | "removeUser"
  | "listSignInsOf"
  | "endSignInOf"
  | "endSignInsOf"
> {
  const { access } = store;
  const found = (name: string) => userCalled(access, name);
  const changed = <T>(result: T): T => principals.changed(result);

  return {
    async listUsers({ cursor, limit }) {
      return pageOf(await access.users(nameCursor(cursor), limit + 1), limit, asUser, ({ name }) => [name]);
    },

    async createUser({ name, password, temporary, role, grants = [], reason }, call) {
      checkName("a user's name", name, 100);
      await checkPassword(name, password);
      checkGrants(grants);
      const user = { name, role, grants, temporary, hash: await hashPassword(password) };
      return asUser(await access.createUser(user, changeOf(call, reason)));
    },

    getUser: async ({ user }) => asUser(await found(user)),

    async changeUser({ user, role, grants, password, temporary, disabled, reason }, call) {
      if (password !== undefined) await checkPassword(user, password);
      const given = {
        ...(role === undefined ? {} : { role }),
        ...(grants === undefined ? {} : { grants: checkGrants(grants) }),
        ...(disabled === undefined ? {} : { disabled }),
        ...(password === undefined ? {} : { hash: await hashPassword(password), temporary }),
        ifVersion: call.ifVersion,
      };
      return changed(asUser(await access.changeUser(user, given, changeOf(call, reason))));
    },

    async listSignInsOf({ user, cursor, limit }, call) {
      const { userId } = await found(user);
      const place = { beforeId: numberCursor(cursor), limit: limit + 1 };
      const rows = await access.signIns(userId, place, idleMs, call.nowMs);
      return pageOf(rows, limit, asSignIn(ownHash(call)), ({ signInId }) => [signInId]);
    },

    async endSignInOf({ user, signIn, reason }, call) {
      const ended = await access.endSignIns(await found(user), { signInId: signIn }, changeOf(call, reason));
      if (ended === 0) throw signInUnknown(`${user} has`, signIn);
      return changed(undefined);
    },

    async endSignInsOf({ user, reason }, call) {
      const which = { keeping: null };
      return changed({ ended: await access.endSignIns(await found(user), which, changeOf(call, reason)) });
    },

    removeUser: async ({ user, reason }, call) =>
      changed(asUser(await access.changeUser(user, { removed: true }, changeOf(call, reason)))),
  };
}
