import { type AccessStore, userCalled } from "../../access/access-store.ts";
import { factorUnknown } from "../../access/second-factor-store.ts";
import { iso } from "../../api/run-json.ts";
import type { Some } from "../call.ts";
import { changeOf } from "../calls/changes.ts";
import { type Judge, signedIn } from "../calls/sign-in-calls.ts";
import { ownHash } from "../calls/user-calls.ts";
import type { Principals } from "./principals.ts";
import type { SecondFactors } from "./second-factors.ts";

export interface SecondFactorOptions {
  access: AccessStore;
  principals: Principals;
  factors: SecondFactors;
  /** Checks a password. @throws SIGN_IN_REFUSED, TOO_MANY_ATTEMPTS */
  judged: Judge;
}

export function secondFactorCalls({
  access,
  principals,
  factors,
  judged,
}: SecondFactorOptions): Some<
  "getSecondFactor" | "beginSecondFactor" | "confirmSecondFactor" | "removeSecondFactor" | "resetSecondFactor"
> {
  const reason = "by the user";
  const changed = <T>(result: T): T => principals.changed(result);
  return {
    async getSecondFactor(_, call) {
      const found = await factors.find(signedIn(call).userId);
      return { enrolled: iso(found?.enrolledMs ?? null), recoveryCodes: found?.recoveryCodes ?? 0 };
    },

    async beginSecondFactor({ password }, call) {
      const { user } = signedIn(call);
      return factors.begin(await judged(user, password, { address: call.address, proven: "signed in" }), call.nowMs);
    },

    async confirmSecondFactor({ code }, call) {
      const { userId, user: name } = signedIn(call);
      const change = changeOf(call, reason);
      return changed({
        recoveryCodes: await factors.confirm({ userId, name }, { code, address: call.address }, ownHash(call), change),
      });
    },

    async removeSecondFactor({ password, code }, call) {
      const { user } = signedIn(call);
      const owner = await judged(user, password, { address: call.address, proven: "signed in" });
      const change = changeOf(call, reason);
      if (!(await factors.judge(owner, { code, address: call.address }, change))) throw factorUnknown(user);
      await factors.remove(owner, change);
      return changed(undefined);
    },

    async resetSecondFactor({ user, reason: why }, call) {
      await factors.remove(await userCalled(access, user), changeOf(call, why));
      return changed(undefined);
    },
  };
}
