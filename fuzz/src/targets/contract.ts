import fc from "fast-check";
import type { RouteShape } from "../../../scheduler/src/api/contract/route.ts";
import { routeIds, shapeOf } from "../../../scheduler/src/api/contract.ts";
import { pollAnswer, pollRequest } from "../../../scheduler/src/api/worker-protocol.ts";
import { readGiven } from "../../../scheduler/src/http/given.ts";
import { expect, same } from "../expected.ts";
import { goodValue } from "../good-values.ts";
import { oddJson, spoiltValues } from "../mutation.ts";
import { target } from "../target.ts";

const shapes = routeIds.map(shapeOf);

export interface Asked {
  readonly at: number;
  readonly params: unknown;
  readonly query: unknown;
  readonly body: unknown;
}

/** Generates requests of each route that are valid by its schemas, and mutates them. */
export const requests: fc.Arbitrary<Asked> = fc.oneof(
  ...shapes.map((shape, at) => {
    const part = (schema: RouteShape["body"]) =>
      schema === undefined
        ? fc.constant({})
        : spoiltValues(
            [0, 1, 2].map((variant) => goodValue(schema, variant)),
            oddJson,
            Object.keys(schema.shape),
          );
    return fc.record({
      at: fc.constant(at),
      params: part(shape.params),
      query: part(shape.query),
      body: part(shape.body),
    });
  }),
);
export const shapeAt = (at: number): RouteShape => shapes[at] as RouteShape;

/** True for a plain object; Fastify passes only objects as parameters and query. */
const isObject = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const polls = [0, 1, 2, 3].map((variant) => goodValue(pollRequest, variant));
const answers = [0, 1, 2, 3].map((variant) => goodValue(pollAnswer, variant));
const pollNames = Object.keys(
  pollRequest.def.type === "object" ? ((pollRequest as { shape?: object }).shape ?? {}) : {},
);

export const contractTargets = [
  target({
    name: "contract",
    share: 3,
    inputs: requests,
    feed: ({ at, params, query, body }) => {
      const shape = shapeAt(at);
      if (!isObject(params) || !isObject(query)) return;
      const given = expect(() => readGiven(shape, { params, query, body }))?.value;
      if (!given || !shape.body) return;
      const parsed = shape.body.safeParse(body ?? {});
      if (parsed.success)
        same(shape.body.parse(parsed.data), parsed.data, `${shape.method} ${shape.path}: read again, it is another`);
    },
  }),
  target({
    name: "worker-protocol",
    share: 2,
    inputs: fc.record({ request: spoiltValues(polls, oddJson, pollNames), answer: spoiltValues(answers, oddJson) }),
    feed: ({ request, answer }) => {
      const asked = pollRequest.safeParse(request);
      if (asked.success) same(pollRequest.parse(asked.data), asked.data, "read again, the request is another");
      const told = pollAnswer.safeParse(answer);
      if (told.success) same(pollAnswer.parse(told.data), told.data, "read again, the answer is another");
    },
  }),
];
