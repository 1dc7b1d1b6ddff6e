/**
 * Sends the example request of every route that changes something: first with an `If-Match` that does not match, then twice with one
 * idempotency key if the route takes one, else once.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { isKept, writes } from "../../src/api/contract/route.ts";
import { type RouteId, routeIds, shapeOf } from "../../src/api/contract.ts";
import { examples } from "../../src/api/examples.ts";
import { StoryStage } from "../support/story-stage.ts";

const stage = new StoryStage();
beforeAll(async () => {
  await stage.open();
});
afterAll(() => stage.close());

const told = Object.keys(examples) as RouteId[];
const audited = async () => (await stage.rows("select count(*)::int as n from $s.audit"))[0]?.n;

test("every changing route has an example, and takes an idempotency key unless it only reads or has no caller", () => {
  const changing = routeIds.filter((routeId) => writes(shapeOf(routeId)));
  expect(changing.filter((routeId) => !told.includes(routeId))).toEqual([]);
  const reading = ["planBundle", "compareCalendar", "checkPayload", "previewOperation", "previewHook"];
  expect(changing.filter((routeId) => !isKept(shapeOf(routeId))).sort()).toEqual([...reading, "signIn"].sort());
});

describe("a route with a failing If-Match condition, and twice with one idempotency key", () => {
  test.each(told)("%s", async (routeId) => {
    const shape = shapeOf(routeId);
    await stage.happens(routeId);
    if (!writes(shape)) {
      stage.keep(routeId, await stage.request(routeId));
      return;
    }
    const before = await audited();
    // No object has a version as high as this one, so the condition fails.
    const stale = await stage.request(routeId, { "if-match": '"999999999"' });
    const heeds = shape.etag === "demands" || shape.etag === "heeds";
    const code = heeds ? expect.stringMatching(/_STALE$/) : "REQUEST_INVALID";
    expect(stale.body).toMatchObject({ status: heeds ? 412 : 400, code });
    if (shape.etag === "demands")
      expect((await stage.request(routeId, { "if-match": null })).body).toMatchObject({ code: "PRECONDITION_NEEDED" });
    expect(await audited(), "a refused request does nothing").toBe(before);
    if (!isKept(shape)) {
      stage.keep(routeId, await stage.request(routeId, { "idempotency-key": "one-for-all" }));
      return;
    }
    const key = { "idempotency-key": `the-key-of-${routeId}` };
    const first = await stage.request(routeId, key);
    expect(first.status).toBe(shape.answer === null ? 204 : (shape.status ?? 200));
    const after = await audited();
    const again = await stage.request(routeId, key);
    if (routeId === "signOut") expect(again.status, "its caller is signed in no more").toBe(401);
    else if (shape.secret) expect(again.body).toMatchObject({ status: 409, code: "ANSWER_NOT_KEPT" });
    else {
      expect(again.headers.get("idempotency-replayed")).toBe("true");
      for (const name of ["location", "etag"]) expect(again.headers.get(name)).toBe(first.headers.get(name));
      expect([again.status, again.body]).toEqual([first.status, first.body]);
    }
    expect(await audited(), "it was done once").toBe(after);
    stage.keep(routeId, first);
  });
});
