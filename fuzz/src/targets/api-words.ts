/** Fuzzes the parts of API requests that are parsed by hand, not by the contract's schemas. */
import fc from "fast-check";
import { Reach } from "../../../scheduler/src/access/access.ts";
import { client } from "../../../scheduler/src/api/client.ts";
import { shapeOf } from "../../../scheduler/src/api/contract.ts";
import type { Call } from "../../../scheduler/src/http/call.ts";
import { requestOf } from "../../../scheduler/src/http/calls/operation-calls.ts";
import { cursorText, readCursor } from "../../../scheduler/src/http/calls/pages.ts";
import { payloadIssues } from "../../../scheduler/src/http/calls/payload-issues.ts";
import { checkRequest, likeOf, operationKinds } from "../../../scheduler/src/run/operations.ts";
import { providerSettings, rightsOf } from "../../../scheduler/src/settings/provider.ts";
import { traceparentOf } from "../../../scheduler/src/store/trace-context.ts";
import type { PayloadSchema } from "../../../scheduler/src/task/payload-schema.ts";
import { expect, expectLater, hold, same } from "../expected.ts";
import { oddJson, oddTexts, oddValues, spoiltTexts, spoiltValues, wordSalad } from "../mutation.ts";
import { target } from "../target.ts";

const places: readonly unknown[] = [
  ["settle"],
  ["1800000000000(0,1)"],
  ["1(4294967296,65536)"],
  ["ended", 1, 1],
  [7],
  [1_900_000_000_000, 42],
  [],
  ["a", 1],
  "x",
  { a: 1 },
  null,
];

/** Generates cursors: mutated copies of valid ones, forged ones, and texts that are not cursors. */
export const cursors: fc.Arbitrary<string> = fc.oneof(
  spoiltValues(places, oddJson).map((place) => Buffer.from(JSON.stringify(place) ?? "").toString("base64url")),
  fc.constantFrom(
    ...[[-1], [0], [2 ** 31], [2 ** 53 - 1], [-(2 ** 53)], [1e300], ["\ud800"], [""], ["\0"], [2 ** 63, 1]].map(
      (place) => cursorText(...place),
    ),
  ),
  spoiltTexts([cursorText("settle"), cursorText(7), cursorText(1, 2)], ["=", "_", "%", "W10"]),
);

const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/** Times that are valid or nearly valid by ISO 8601. */
export const oddTimes = [
  "0000-01-01T00:00:00Z",
  "0001-01-01T00:00:00-23:59",
  "9999-12-31T23:59:59.999999999Z",
  "1970-01-01T00:00:00Z",
  "2027-02-29T00:00:00Z",
  "2028-02-29T24:00:00Z",
  "2027-01-01T00:00Z",
  "2027-01-01T00:00:00+24:00",
  "2027-01-01t00:00:00z",
  "2027-01-01T00:00:00,5Z",
  "+012027-01-01T00:00:00Z",
  "2027-01-01T23:59:60Z",
];
const filters = [
  { kind: "cancel", filter: { task: "settle", since: "2027-01-01T00:00:00Z", states: ["ready"] } },
  { kind: "redrive", filter: { matching: "a*?b", namespaces: ["billing"], fingerprint: "0123456789ab", run: 7 } },
  { kind: "pause", filter: { all: true } },
  {
    kind: "backfill",
    filter: { task: "settle" },
    range: { from: "2027-01-01T00:00:00Z", perSecond: 5, reverse: true },
  },
];
const who = { user: "fuzz", role: null, grants: [{ namespace: "billing", role: "admin" as const }], token: null };
const reaches = [new Reach({ ...who, role: "admin", grants: [] }, "operator"), new Reach(who, "operator")];

/** Returns true if the text matches the pattern by the rules of PostgreSQL's LIKE. */
function isLike(text: string, pattern: string): boolean {
  const signs = [...pattern.matchAll(/\\(.)|([%_])|(.)/gsu)];
  const source = signs.map(([, escaped, sign, plain]) =>
    sign === undefined ? (escaped ?? plain ?? "").replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&") : sign === "%" ? ".*" : ".",
  );
  return new RegExp(`^${source.join("")}$`, "su").test(text);
}

const rules = {
  issuer: "https://login.example.com",
  clientId: "c",
  clientSecret: "s",
  url: "https://carillon.example.com",
  label: "the house",
  name: "email",
  scopes: ["profile"],
  rules: [
    { claim: "groups", has: "ops", role: "operator" },
    { claim: "admin", role: "admin", in: ["a", "b"] },
  ],
};
const claims = { iss: "https://x", sub: "7", groups: ["ops", 7], admin: true, email: "a@b.c" };

const schemas = [
  {
    type: "object",
    properties: { ledger: { type: "string", pattern: "^(a+)+$" }, rows: { type: "array", items: { type: "integer" } } },
    required: ["ledger"],
    additionalProperties: false,
  },
  {
    type: "array",
    items: [{ type: "string", pattern: "^(a|a)*$" }],
    additionalItems: { $ref: "#/$defs/x" },
    $defs: { x: {} },
  },
  { anyOf: [{ $ref: "#/$defs/tree" }, { type: "null" }], $defs: { tree: { properties: { left: { $ref: "#" } } } } },
  { type: ["string", "null"], format: "date-time", minLength: 1, enum: ["a"], const: "a", default: "a" },
  { oneOf: [{ type: "number", multipleOf: 0.1, minimum: 0 }, { not: { type: "object" } }], allOf: [{}, true] },
];
const schemaWords = [
  "$ref",
  "$defs",
  "anyOf",
  "oneOf",
  "allOf",
  "not",
  "items",
  "prefixItems",
  "additionalItems",
  "pattern",
  "type",
  "properties",
  "additionalProperties",
  "propertyNames",
  "if",
  "then",
  "else",
  "contains",
  "uniqueItems",
  "format",
];
const payloads = [
  { ledger: `${"a".repeat(40)}!`, rows: [1, 2] },
  [`${"a".repeat(40)}!`],
  { left: { left: null } },
  "a",
  0.3,
];

const answered = fc.record({
  status: fc.constantFrom(200, 200, 200, 201, 204, 301, 400, 401, 404, 409, 429, 500, 502, 503),
  text: fc.oneof(
    spoiltValues(
      [
        { items: [], next: null },
        { code: "TASK_UNKNOWN", detail: "x", hint: "y", status: 404 },
      ],
      oddJson,
      ["code", "detail", "hint"],
    ).map((value) => JSON.stringify(value) ?? ""),
    spoiltTexts(['{"code":"KEY_UNKNOWN"}', "<html>", "data: {}\n\ndata: [1]\n\n"], ["data: ", "\n\n", "{", "\0"]),
  ),
  after: fc.constantFrom(null, "5", "-1", "x", "1e999", "Wed, 21 Oct 2026 07:28:00 GMT"),
});

export const apiWordTargets = [
  target({
    name: "cursors",
    share: 0.5,
    inputs: fc.record({
      text: cursors,
      shape: fc.constantFrom<("string" | "number")[]>(
        ["string"],
        ["number"],
        ["number", "number"],
        ["string", "number"],
      ),
    }),
    feed: ({ text, shape }) => {
      const place = expect(() => readCursor(text, shape))?.value;
      if (!place) return;
      same(
        place.map((part) => typeof part),
        shape,
        "its parts are of other kinds",
      );
      same(readCursor(cursorText(...place), shape), place, "written and read again, it is another place");
    },
    grown: {
      corpus: [cursorText("a")],
      most: 100_000,
      feed: (text) => void expect(() => readCursor(text, ["string"])),
    },
  }),
  target({
    name: "trace-headers",
    share: 0.5,
    inputs: fc.oneof(
      spoiltTexts(
        [parent, `cc-${parent.slice(3)}-more`, `${parent}, ${parent}`],
        ["00", "ff", "-", "0".repeat(32), "A"],
      ),
      fc.constantFrom(...oddTexts),
    ),
    feed: (header) => {
      const read = traceparentOf(header);
      if (read === undefined) return;
      hold(
        /^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/.test(read),
        () => `it is carried on as ${JSON.stringify(read)}`,
      );
      same(traceparentOf(read), read, "read again, it is another");
    },
    grown: { corpus: [parent], most: 100_000, feed: (text) => void traceparentOf(text) },
  }),
  target({
    name: "operation-filters",
    share: 1,
    inputs: fc.record({
      body: spoiltValues(
        [...filters, ...operationKinds.map((kind) => ({ kind, filter: { task: "a", group: "b" } }))],
        fc.oneof(oddJson, fc.constantFrom(...oddTimes)),
        ["task", "since", "until", "states", "all", "namespaces", "range", "from", "to", "perSecond"],
      ),
      reach: fc.constantFrom(...reaches),
      name: wordSalad(["a", "*", "?", "%", "_", "\\", "/", "b"], "", 8),
      glob: wordSalad(["a", "*", "?", "%", "_", "\\", "/", "b"], "", 8),
    }),
    feed: ({ body, reach, name, glob }) => {
      same(isLike(name, likeOf(glob)), isGlob(name, glob), `${JSON.stringify(name)} by ${JSON.stringify(glob)}`);
      const given = shapeOf("previewOperation").body?.safeParse(body);
      if (!given?.success) return;
      const call = { who, reach, nowMs: 1_900_000_000_000 } as unknown as Call;
      const request = expect(() => requestOf(given.data as Parameters<typeof requestOf>[0], call))?.value;
      if (!request) return;
      const { filter, range, pauseUntilMs } = request;
      const maybe = [filter.sinceMs, filter.untilMs, range?.fromMs, range?.toMs, pauseUntilMs];
      const times = maybe.filter((ms) => ms !== undefined);
      hold(times.every(Number.isSafeInteger), () => `its times are ${times}`);
      const isWide = filter.task === undefined && filter.namespaces === undefined;
      hold(reach.namespaces === null || !isWide, () => "who acts in one namespace would act in all");
      expect(() => checkRequest(request, call.nowMs));
    },
  }),
  target({
    name: "provider-claims",
    share: 0.5,
    inputs: fc.record({
      options: spoiltValues([rules], oddValues, ["claim", "has", "role", "in", "rules", "url"], 2),
      said: spoiltValues([claims], oddJson, ["groups", "admin", "sub"]),
    }),
    feed: ({ options, said }) => {
      const settings = expect(() => providerSettings(options as Parameters<typeof providerSettings>[0]))?.value;
      if (!settings || typeof said !== "object" || said === null) return;
      const rights = rightsOf(settings, said as Parameters<typeof rightsOf>[1]);
      if (rights) hold(rights.role !== null || rights.grants.length > 0, () => "somebody is let in with no role");
    },
  }),
  target({
    name: "payload-schemas",
    share: 0.2,
    inputs: fc.record({
      schema: spoiltValues(schemas, fc.oneof(oddJson, fc.constantFrom(...schemaWords, "#", "#/$defs/x")), schemaWords),
      payload: spoiltValues(payloads, oddJson, ["ledger", "rows", "left"]),
    }),
    feed: ({ schema, payload }) => {
      if (typeof schema !== "object" || schema === null || Array.isArray(schema)) return;
      const issues = payloadIssues(JSON.parse(JSON.stringify(schema)) as PayloadSchema, payload);
      hold(issues === null || issues.length <= 100, () => `${issues?.length} issues`);
      JSON.stringify(issues);
    },
  }),
  target({
    name: "client-answers",
    share: 0.5,
    inputs: answered,
    feed: async ({ status, text, after }) => {
      const headers: Record<string, string> = after === null ? {} : { "retry-after": after };
      const answer = () => new Response(status === 204 ? null : text, { status, headers });
      const api = client({ server: "http://127.0.0.1:1", fetch: async () => answer() });
      await expectLater(() => api.listRuns());
      await expectLater(async () => {
        for await (const event of api.followEvents()) JSON.stringify(event);
      });
    },
  }),
];

function isGlob(text: string, glob: string): boolean {
  const source = [...glob].map((sign) =>
    sign === "*" ? ".*" : sign === "?" ? "." : sign.replace(/[\\^$.+()[\]{}|/-]/g, "\\$&"),
  );
  return new RegExp(`^${source.join("")}$`, "su").test(text);
}
