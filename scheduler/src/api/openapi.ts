/**
 * The OpenAPI 3.1 page of the API, generated from the contract. Every server returns it as /v1/openapi.json; the repository has no copy.
 */
import { z } from "zod";
import { isKept, type RouteShape, writes } from "./contract/route.ts";
import { type RouteId, routeIds, shapeOf } from "./contract.ts";
import { sunsetOf } from "./deprecation.ts";
import type { Example } from "./examples/example.ts";
import { examples } from "./examples.ts";
import { statusOf } from "./problem-status.ts";
import { problem } from "./worker-protocol.ts";

type Schema = { [name: string]: unknown };

/** The error statuses that every route may return. */
const always = [400, 401, 403, 429, 500, 503];
const refusals: Record<number, string> = {
  400: "The request is not what this page says.",
  401: "Nobody is signed in, or the token is not known, expired or revoked.",
  403: "Whoever asks may not do this.",
  404: "There is no such thing.",
  409: "What is there does not allow it, or the first request with this idempotency key is still under way.",
  410: "What was asked for is no longer kept.",
  412: "It was changed since it was read.",
  413: "The request is larger than the server reads.",
  422: "The idempotency key was used for another request.",
  428: "The change does not say which version it is made from.",
  429: "It was too much: the error says of what, and Retry-After, if it is there, how long to wait.",
  500: "The server failed. Its log has the details, under the request's `x-request-id`.",
  503: "The store is away, the server is stopping, or it has too much to do.",
};

export function describeApi(version: string, basePath = ""): object {
  const schemas: Schema = {};
  const paths: Record<string, Record<string, unknown>> = {};
  for (const routeId of routeIds) {
    const shape = shapeOf(routeId);
    paths[shape.path] ??= {};
    (paths[shape.path] as Schema)[shape.method.toLowerCase()] = operationOf(routeId, shape, schemas);
  }
  lifted(problem.meta({ id: "Problem" }), "output", schemas);
  for (const schema of Object.values(schemas)) addDiscriminators(schema, schemas);
  addDiscriminators(paths, schemas);
  return {
    openapi: "3.1.0",
    info: {
      title: "Carillon",
      version,
      description: "Tasks that run on time and are accounted for. See docs/reference/api.md and docs/access/access.md.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: basePath || "/" }],
    security: [{ token: [] }, { cookie: [] }],
    tags: [...new Set(routeIds.map((routeId) => shapeOf(routeId).noun))].map((name) => ({ name })),
    paths,
    components: {
      securitySchemes: {
        token: { type: "http", scheme: "bearer", description: "A token, ct_…" },
        cookie: { type: "apiKey", in: "cookie", name: "carillon" },
      },
      responses: Object.fromEntries(
        Object.entries(refusals).map(([status, description]) => [
          status,
          {
            description,
            content: { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } },
          },
        ]),
      ),
      schemas: Object.fromEntries(Object.entries(schemas).sort(([a], [b]) => (a < b ? -1 : 1))),
    },
  };
}

function operationOf(routeId: RouteId, shape: RouteShape, schemas: Schema): object {
  const { noun, summary, policy, params, query, body, answer, media, event, status, errors, deprecated } = shape;
  const needs =
    policy === "anyone"
      ? "Needs no sign-in."
      : policy === "signed-in"
        ? ""
        : `Needs the role ${policy} ${whereOf(shape)}.`;
  const once = shape.secret ? " The answer has a secret, which is shown this once." : "";
  const refused = errors.length === 0 ? "" : ` Refused by ${errors.join(", ")}.`;
  const old = deprecated
    ? ` Deprecated since ${deprecated.since}, served until ${dayOf(sunsetOf(deprecated))}. ${deprecated.instead}`
    : "";
  const words = `${needs}${once}${refused}${old}`.trim();
  const { given = {}, ifVersion, answer: answered } = examples[routeId] ?? ({} as Example);
  return {
    operationId: routeId,
    tags: [noun],
    summary,
    ...(words === "" ? {} : { description: words }),
    ...(deprecated ? { deprecated: true } : {}),
    ...(policy === "anyone" ? { security: [] } : {}),
    parameters: [
      ...parametersOf(params, "path", schemas, given),
      ...parametersOf(query, "query", schemas, given),
      ...headersOf(shape, ifVersion),
    ],
    ...(body
      ? { requestBody: { required: true, content: jsonOf(body, "input", schemas, fieldsOf(body, given)) } }
      : {}),
    responses: {
      [answer === null ? 204 : (status ?? 200)]: {
        description: answer === null ? "Done." : event ? "A stream of events." : "Answered.",
        ...answerHeadersOf(shape),
        ...(event
          ? { content: { "text/event-stream": { schema: lifted(event, "output", schemas) } } }
          : answer
            ? { content: jsonOf(answer, "output", schemas, answered, media) }
            : {}),
      },
      ...(isConditional(shape)
        ? { 304: { description: "The answer is as the caller has it, by If-None-Match." } }
        : {}),
      ...refusalsOf(shape),
    },
  };
}

const dayOf = (time: Date): string => time.toISOString().slice(0, 10);

function answerHeadersOf({ etag, answer, makes, deprecated }: RouteShape): object {
  const header = (description: string) => ({ schema: { type: "string" }, description });
  const headers = {
    ...(etag && answer !== null
      ? { etag: header("The version; of a GET followed by a dot and a hash of the answer.") }
      : {}),
    ...(makes ? { location: header(`The path of what was made, which ${makes.readBy} reads.`) } : {}),
    ...(deprecated
      ? {
          deprecation: header("Since when the route is deprecated (RFC 9745)."),
          sunset: header("From when on it may be gone (RFC 8594)."),
        }
      : {}),
  };
  return Object.keys(headers).length === 0 ? {} : { headers };
}

const whereOf = ({ touches }: RouteShape): string =>
  touches === "cluster"
    ? "everywhere"
    : touches === "nothing" || touches === "listed"
      ? "somewhere"
      : "in the namespace that it is about";

function refusalsOf(shape: RouteShape): object {
  // 409 and 422 concern idempotency keys, which only the routes of `isKept` accept; 413 concerns a request body that is too large.
  const statuses = new Set([
    ...always,
    ...(isKept(shape) ? [409, 413, 422] : writes(shape) ? [413] : []),
    ...shape.errors.map(statusOf),
  ]);
  return Object.fromEntries(
    [...statuses].sort().map((status) => [status, { $ref: `#/components/responses/${status}` }]),
  );
}

const isConditional = (shape: RouteShape): boolean => shape.etag !== undefined && !writes(shape);

/** Returns the fields of an example's request that belong to the body. */
const fieldsOf = (body: z.ZodObject, given: object) =>
  Object.fromEntries(Object.entries(given).filter(([name]) => name in body.shape));

function headersOf(shape: RouteShape, ifVersion: number | undefined): object[] {
  const header = (name: string, required: boolean, description: string, example?: string) => ({
    name,
    in: "header",
    required,
    description,
    ...(example === undefined ? {} : { example }),
    schema: { type: "string" },
  });
  return [
    ...(isKept(shape)
      ? [header("idempotency-key", false, "Repeated with the same key, the request is done once and answered as then.")]
      : []),
    ...(isConditional(shape)
      ? [
          header(
            "if-none-match",
            false,
            "ETags of answers that the caller has: to one that is still right the answer is 304.",
          ),
        ]
      : []),
    ...(shape.etag === "demands" || shape.etag === "heeds"
      ? [
          header(
            "if-match",
            shape.etag === "demands",
            "The ETag of what the change is made from; * for whatever is there.",
            ifVersion === undefined ? undefined : `"${ifVersion}"`,
          ),
        ]
      : []),
  ];
}

function parametersOf(
  part: z.ZodObject | undefined,
  place: "path" | "query",
  schemas: Schema,
  given: Readonly<Record<string, unknown>>,
): object[] {
  if (!part) return [];
  const { properties = {}, required = [] } = lifted(part, "input", schemas) as {
    properties?: Record<string, Schema>;
    required?: string[];
  };
  return Object.entries(properties).map(([name, { description, deprecated, ...schema }]) => ({
    name,
    in: place,
    ...(deprecated === true ? { deprecated } : {}),
    required: place === "path" || required.includes(name),
    ...(description === undefined ? {} : { description }),
    ...(name in given ? { example: given[name] } : {}),
    ...(schema.type === "array" ? { style: "form", explode: true } : {}),
    schema,
  }));
}

const jsonOf = (
  schema: z.ZodType,
  io: "input" | "output",
  schemas: Schema,
  example: unknown,
  media = "application/json",
) => ({
  [media]: { schema: lifted(schema, io, schemas), ...(example === undefined ? {} : { example }) },
});

/**
 * Adds a discriminator to each union of named objects in which one field distinguishes the members: the name of this field, and the member
 * for each of its values.
 */
function addDiscriminators(part: unknown, schemas: Schema): void {
  if (typeof part !== "object" || part === null) return;
  for (const inner of Object.values(part)) addDiscriminators(inner, schemas);
  const { oneOf } = part as { oneOf?: { $ref?: string }[] };
  if (!oneOf?.every(({ $ref }) => $ref !== undefined)) return;
  const members = oneOf.map(({ $ref = "" }) => ({ $ref, ...(schemas[$ref.split("/").at(-1) ?? ""] as Member) }));
  const propertyName = Object.keys(members[0]?.properties ?? {}).find((name) =>
    members.every(({ properties }) => tagsOf(properties[name]).length > 0),
  );
  if (propertyName === undefined) return;
  const mapping = members.flatMap(({ $ref, properties }) => tagsOf(properties[propertyName]).map((tag) => [tag, $ref]));
  Object.assign(part, { discriminator: { propertyName, mapping: Object.fromEntries(mapping) } });
}

interface Member {
  properties: Readonly<Record<string, { const?: string; enum?: readonly string[] }>>;
}

const tagsOf = (property: Member["properties"][string] | undefined): readonly string[] =>
  property?.const === undefined ? (property?.enum ?? []) : [property.const];

/** Returns the JSON schema of a type. Named parts are moved to `schemas` and referenced. */
function lifted(schema: z.ZodType, io: "input" | "output", schemas: Schema): Schema {
  const { $schema: _, $defs = {}, id, ...rest } = z.toJSONSchema(schema, { io }) as Schema & { $defs?: Schema };
  for (const [name, part] of Object.entries($defs)) schemas[name] = pointed(part as Schema);
  const own = pointed(rest);
  if (typeof id !== "string") return own;
  schemas[id] = own;
  return { $ref: `#/components/schemas/${id}` };
}

function pointed(part: unknown): Schema {
  if (Array.isArray(part)) return part.map(pointed) as unknown as Schema;
  if (typeof part !== "object" || part === null) return part as Schema;
  const given = part as Schema;
  // Drop the pattern of date-times, some 300 characters long because it spells out leap years; `format` has the same meaning.
  const left = (entry: string) =>
    !(entry === "id" && typeof given.id === "string") && !(entry === "pattern" && given.format === "date-time");
  return Object.fromEntries(
    Object.entries(given).flatMap(([name, value]) => {
      if (!left(name)) return [];
      const isRef = name === "$ref" && typeof value === "string";
      return [[name, isRef ? value.replace("#/$defs/", "#/components/schemas/") : pointed(value)]];
    }),
  );
}
