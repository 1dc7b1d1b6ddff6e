import { afterAll, beforeAll, expect, test } from "vitest";
import { limits } from "../../src/base/limits.ts";
import { RemoteStage } from "../support/remote-stage.ts";

const stage = new RemoteStage();
beforeAll(() => stage.serve());
afterAll(() => stage.close());

test("a worker key has so many live sessions and no more; another key's workers join beside them", async () => {
  const [mine, other] = [await stage.key("mine"), await stage.key("other")];
  const first = await stage.join(mine);
  const [{ keyId } = { keyId: 0 }] = await stage.rows<{ keyId: number }>(
    'select key_id as "keyId" from $s.session where id = $1',
    [first],
  );
  // As if so many workers had joined: they are live for a minute from now.
  await stage.rows(
    `insert into $s.session (node, role, host, pid, version, timeout_ms, started_ms, seen_ms, groups, labels, key_id, instance)
     select 'many-' || n, 'worker', '', 1, '', 60000, $2, $2, '{}', '{}', $1, '' from generate_series(2, $3::int) n`,
    [keyId, Date.now(), limits.sessionsPerKey],
  );
  for (let again = 0; again < 2; again++)
    expect(await stage.post(mine, { join: { name: "one-more" } })).toMatchObject({
      status: 429,
      body: { code: "KEY_SESSIONS" },
    });
  expect((await stage.post(mine, { join: { name: "many-7" } })).body.code, "a name that is taken").toBe(
    "NODE_NAME_TAKEN",
  );
  expect(await stage.join(other)).toBeGreaterThan(0);
  await stage.poll(mine, { session: first, leave: true });
  expect(await stage.join(mine), "one has left").toBeGreaterThan(0);
});
