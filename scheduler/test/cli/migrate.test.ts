import { expect, it } from "vitest";
import { ask, here, json, start } from "./process.ts";

it("a schema is planned, waited for and migrated as steps of their own; a node that may not do it is refused", async () => {
  const waiting = start(["migrate", "--wait", ...here()]);
  const [planned, refused] = await Promise.all([
    ask("migrate", "--plan"),
    ask("server", "--no-migrate", "--listen", "127.0.0.1:0"),
  ]);
  expect([planned.code, planned.stdout]).toEqual([2, expect.stringMatching(/version 0 would be \d+\n {2}0001 main\n/)]);
  expect([refused.code, refused.stderr]).toEqual([4, expect.stringContaining("STORE_OLDER")]);
  const { from, to, applied } = await json("migrate");
  expect([from, applied[0], applied.at(-1).number]).toEqual([0, { number: 1, name: "main" }, to]);
  expect((await waiting.ended()).code).toBe(0);
  const [again, next] = await Promise.all([ask("migrate", "--plan"), json("restored", "--reason", "the disk of db-1")]);
  expect([again.code, again.stdout]).toEqual([0, expect.stringMatching(/is at version \d+: nothing to do\n$/)]);
  expect(next).toEqual({ runId: 1_000_000_002, fence: 1_000_000_002, term: 1_000_001 });
});
