/** The contract has no deprecated route at present, so these tests deprecate one in the servers that they start. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { RouteShape } from "../../src/api/contract/route.ts";
import { shapeOf } from "../../src/api/contract.ts";
import { ApiStage } from "../support/api-stage.ts";

const stage = new ApiStage();
type Open = { -readonly [Name in keyof RouteShape]: RouteShape[Name] };
const marked = ["getMe", "followEvents"] as const;

beforeAll(async () => {
  for (const routeId of marked)
    (shapeOf(routeId) as Open).deprecated = { since: "2030-01-03", instead: "Use GET /v1/self." };
  await stage.open();
});
afterAll(async () => {
  for (const routeId of marked) delete (shapeOf(routeId) as Open).deprecated;
  await stage.close();
});

const headersOf = async (path: string, token?: string) => {
  const over = new AbortController();
  const { headers } = await fetch(`${stage.urlOf()}${path}`, {
    headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
    signal: over.signal,
  });
  over.abort();
  return [headers.get("deprecation"), headers.get("sunset")];
};

test("each response of a deprecated route states its deprecation date and its removal date, a year later", async () => {
  const said = ["@1893628800", "Fri, 03 Jan 2031 00:00:00 GMT"];
  expect(new Date(1_893_628_800_000).toISOString()).toBe("2030-01-03T00:00:00.000Z");
  for (const path of ["/v1/me", "/v1/events"]) {
    expect(await headersOf(path, stage.tokens.viewer)).toEqual(said);
    expect(await headersOf(path), "a refusal, too").toEqual(said);
  }
  expect(await headersOf("/v1/tasks", stage.tokens.viewer)).toEqual([null, null]);
});

test("the OpenAPI document marks deprecated routes and names the replacement", async () => {
  const { paths } = (await stage.ask("GET", "/v1/openapi.json")).body;
  const { get } = paths["/v1/me"];
  expect(get).toMatchObject({
    deprecated: true,
    description: "Deprecated since 2030-01-03, served until 2031-01-03. Use GET /v1/self.",
  });
  expect(Object.keys(get.responses[200].headers)).toEqual(["deprecation", "sunset"]);
  const others = Object.values(paths as Record<string, Record<string, { deprecated?: boolean }>>).flatMap(
    Object.values,
  );
  expect(others.filter(({ deprecated }) => deprecated)).toHaveLength(marked.length);
});
