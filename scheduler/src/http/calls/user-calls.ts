import { checkGrants, type Principal } from "../../access/access.ts";
import type { User } from "../../access/access-store.ts";
import { checkPassword, hashPassword } from "../../access/password.ts";
import { iso, isoTime } from "../../api/run-json.ts";
import { CarillonError } from "../../base/errors.ts";
import type { Store } from "../../store/store.ts";
import { checkName } from "../../task/names.ts";
import type { Some } from "../call.ts";
import type { Principals } from "../sign-in/principals.ts";
import { changeOf } from "./changes.ts";
import { nameCursor, pageOf } from "./pages.ts";

/** The role everywhere is told as a grant too. */
export const grantsOf = ({ role, grants }: Pick<Principal, "role" | "grants">) => [
  ...(role === null ? [] : [{ namespace: "*", role }]),
  ...grants,
];

const asUser = ({ name, version, role, grants, createdMs, createdBy, disabledMs, provided }: User) => ({
  name,
  role,
  grants: grantsOf({ role, grants }),
  created: isoTime(createdMs),
  createdBy,
  disabled: iso(disabledMs),
  provided,
  version,
});

export function userCalls(
  store: Store,
  principals: Principals,
): Some<"listUsers" | "createUser" | "changeUser" | "removeUser" | "endSignInsOf"> {
  const { access } = store;
  const changed = <T>(result: T): T => {
    principals.forget();
    return result;
  };

  return {
    async listUsers({ cursor, limit }) {
      return pageOf(await access.users(nameCursor(cursor), limit + 1), limit, asUser, ({ name }) => [name]);
    },

    async createUser({ name, password, role, grants = [], reason }, call) {
      checkName("a user's name", name, 100);
      checkPassword(name, password);
      checkGrants(grants);
      const user = { name, role, grants, hash: await hashPassword(password) };
      return asUser(await access.createUser(user, changeOf(call, reason)));
    },

    async changeUser({ user, role, grants, password, disabled, reason }, call) {
      if (password !== undefined) checkPassword(user, password);
      const given = {
        ...(role === undefined ? {} : { role }),
        ...(grants === undefined ? {} : { grants: checkGrants(grants) }),
        ...(disabled === undefined ? {} : { disabled }),
        ...(password === undefined ? {} : { hash: await hashPassword(password) }),
        ifVersion: call.ifVersion,
      };
      return changed(asUser(await access.changeUser(user, given, changeOf(call, reason))));
    },

    async endSignInsOf({ user, reason }, call) {
      const found = await access.userByName(user);
      if (!found)
        throw new CarillonError("USER_UNKNOWN", `there is no user ${user}`, {
          hint: "The list of users has their names.",
        });
      return changed({ ended: await access.endSignIns(found, null, changeOf(call, reason)) });
    },

    removeUser: async ({ user, reason }, call) =>
      changed(asUser(await access.changeUser(user, { removed: true }, changeOf(call, reason)))),
  };
}
