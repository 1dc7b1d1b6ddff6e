import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type RouteId, routeIds, shapeOf } from "../../src/api/contract.ts";
import { examples } from "../../src/api/examples.ts";
import { StoryStage } from "../support/story-stage.ts";

const stage = new StoryStage();
beforeAll(async () => {
  await stage.open();
});
afterAll(() => stage.close());

/** Routes without an example, each with the reason. */
const without: Partial<Record<RouteId, string>> = {
  tailLogs: "a stream",
  followEvents: "a stream",
  followRunEvents: "a stream",
  getTimeline: "a number for each minute of a day at least",
  listFiring: "its times are of the days to come",
  getCalendarFeed: "a file of the days to come",
};
const told = Object.keys(examples) as RouteId[];

describe("the examples of the OpenAPI document", () => {
  test("cover every route, except those with a stated reason", () => {
    expect([...told, ...Object.keys(without)].sort()).toEqual([...routeIds].sort());
  });

  test("match the contract", () => {
    for (const routeId of told) {
      const { answer } = shapeOf(routeId);
      const shown = examples[routeId]?.answer;
      expect([routeId, shown]).toEqual([routeId, answer ? answer.parse(shown) : undefined]);
    }
  });

  test.each(told)("%s: the server answers as in the example", async (routeId) => {
    const { answer, status } = shapeOf(routeId);
    await stage.happens(routeId);
    const asked = await stage.request(routeId);
    expect(asked, JSON.stringify(asked.body)).toMatchObject({ status: answer === null ? 204 : (status ?? 200) });
    expect(stage.keep(routeId, asked)).toEqual([]);
  });
});
