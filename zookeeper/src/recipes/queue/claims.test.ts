import { expect, it } from "vitest";
import { ZooKeeperError } from "../../base/errors.ts";
import type { Session } from "../../operations/session.ts";
import { claim } from "./claims.ts";
import { plainNames } from "./names.ts";

it("the result of a claim whose answer was lost is determined despite temporary errors", async () => {
  const name = "queue-0000000000";
  const troubles = ["OPERATION_TIMEOUT", "THROTTLED", "CONNECTION_LOSS"] as const;
  let asked = 0;
  const session = {
    id: 7n,
    live: true,
    get: async (path: string) =>
      path.startsWith("/locks")
        ? { data: Buffer.from("mine"), stat: { ephemeralOwner: 7n, czxid: 9n } }
        : { data: Buffer.alloc(0), stat: { version: 0 } },
    multi: async () => {
      throw new ZooKeeperError("CONNECTION_LOSS", "lost");
    },
    sync: async () => {
      const code = troubles[asked++];
      if (code) throw new ZooKeeperError(code, "in passing");
    },
  } as unknown as Session;
  const layout = { path: "/q", lockPath: "/locks", poisonPath: "/p", names: plainNames, acl: undefined };
  const item = plainNames.parse(name)!;
  expect(await claim(session, layout, name, item, "mine")).toMatchObject({ name, fence: 9n });
  expect(asked).toBe(4);
});
