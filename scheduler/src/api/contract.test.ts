import { readFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import type { ZodObject } from "zod";
import { touches } from "../access/access.ts";
import { version } from "../base/version.ts";
import { runEventTypes } from "../store/event-store.ts";
import { optionNames, optionRows } from "../task/options.ts";
import { partsOf } from "./client.ts";
import { time, writes } from "./contract/route.ts";
import { type RouteId, routeIds, shapeOf } from "./contract.ts";
import { EventReader, eventText } from "./event-reader.ts";
import { examples } from "./examples.ts";
import { describeApi } from "./openapi.ts";
import { statusOf } from "./problem-status.ts";

interface Discriminator {
  propertyName: string;
  mapping: Record<string, string>;
}

const here = dirname(fileURLToPath(import.meta.url));

describe("the contract", () => {
  test("has each method and path once, and every path parameter in params", () => {
    const seen = routeIds.map((routeId) => `${shapeOf(routeId).method} ${shapeOf(routeId).path}`);
    expect(new Set(seen).size).toBe(seen.length);
    for (const routeId of routeIds) {
      const { path, params } = shapeOf(routeId);
      const places = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
      expect([routeId, Object.keys(params?.shape ?? {})]).toEqual([routeId, places]);
    }
  });

  test("declares for each route which namespaces it touches: that of the object in its path, if there is one", () => {
    const named = ["task", "calendar", "group", "key", "run", "operation", "silence", "alarmRule", "hook"];
    for (const routeId of routeIds) {
      const { touches: about, params, policy } = shapeOf(routeId);
      const place = Object.keys(params?.shape ?? {}).find((one) => named.includes(one));
      expect([routeId, touches]).toEqual([routeId, expect.arrayContaining([about])]);
      expect([routeId, named.includes(about) ? about : undefined]).toEqual([routeId, place]);
      if (about === "nothing")
        expect([routeId, policy]).toEqual([routeId, expect.stringMatching(/anyone|signed-in|viewer/)]);
    }
  });

  test("never repeats a name in path, query and body, because the client merges them", () => {
    for (const routeId of routeIds) {
      const { params, query, body } = shapeOf(routeId);
      const names = [params, query, body].flatMap((part) => Object.keys(part?.shape ?? {}));
      expect([routeId, names]).toEqual([routeId, [...new Set(names)]]);
    }
  });

  test("declares for each creating route the route that reads the new object, and the answer's fields that identify it", () => {
    for (const routeId of routeIds) {
      const { makes, answer, status } = shapeOf(routeId);
      if (!makes) continue;
      expect([routeId, routeIds]).toEqual([routeId, expect.arrayContaining([makes.readBy])]);
      const { method, params } = shapeOf(makes.readBy as RouteId);
      expect([routeId, method, Object.keys(makes.places)]).toEqual([routeId, "GET", Object.keys(params?.shape ?? {})]);
      const fields = Object.keys((answer as ZodObject).shape);
      expect([routeId, fields]).toEqual([routeId, expect.arrayContaining(Object.values(makes.places))]);
      expect([routeId, [201, 202]]).toEqual([routeId, expect.arrayContaining([status])]);
    }
  });

  test("gives every list a cursor and a bounded page; no GET route changes anything", () => {
    for (const routeId of routeIds) {
      const { method, query, answer, body } = shapeOf(routeId);
      const isPage = answer && "shape" in answer && "items" in (answer.shape as object);
      if (isPage)
        expect([routeId, Object.keys(query?.shape ?? {})]).toEqual([
          routeId,
          expect.arrayContaining(["cursor", "limit"]),
        ]);
      if (method === "GET") expect([routeId, body, writes({ method })]).toEqual([routeId, undefined, false]);
    }
  });

  test("has every route and every task option in the OpenAPI document", () => {
    const page = JSON.parse(JSON.stringify(describeApi(version)));
    for (const routeId of routeIds) {
      const { path, method } = shapeOf(routeId);
      expect(page.paths[path][method.toLowerCase()]).toMatchObject({ operationId: routeId });
    }
    const { properties, additionalProperties } = page.components.schemas.TaskOptions;
    expect([Object.keys(properties), additionalProperties]).toEqual([optionNames, false]);
    for (const [option, { description }] of optionRows) expect(properties[option]).toMatchObject({ description });
  });

  test("describes each parameter and each body field in words, beyond its type", () => {
    const page = JSON.parse(JSON.stringify(describeApi(version)));
    const wordsOf = ({ description, $ref }: { description?: string; $ref?: string }): string | undefined =>
      description ?? (page.components.schemas[$ref?.split("/").at(-1) ?? ""]?.description as string | undefined);
    const without: string[] = [];
    const note = (routeId: RouteId, name: string, words: string | undefined) => {
      if (words === undefined || words === time.description) without.push(`${routeId} ${name}`);
    };
    let described = 0;
    for (const routeId of routeIds) {
      const { path, method } = shapeOf(routeId);
      const { parameters, requestBody } = page.paths[path][method.toLowerCase()];
      for (const { name, description } of parameters) note(routeId, name, description);
      const body = requestBody?.content["application/json"].schema.properties ?? {};
      for (const [name, field] of Object.entries(body)) note(routeId, name, wordsOf(field as object));
      described += parameters.length + Object.keys(body).length;
    }
    expect(without).toEqual([]);
    expect(described).toBeGreaterThan(300);
  });

  test("describes each status with which a route can refuse a request", () => {
    const page = JSON.parse(JSON.stringify(describeApi(version)));
    const told = new Set<string>();
    for (const routeId of routeIds) {
      const { path, method, errors } = shapeOf(routeId);
      const { responses } = page.paths[path][method.toLowerCase()];
      for (const code of errors) expect(Object.keys(responses), `${routeId}: ${code}`).toContain(`${statusOf(code)}`);
      expect(Object.keys(responses)).toEqual(expect.arrayContaining(["400", "401", "403", "429", "500", "503"]));
      for (const [status, { $ref }] of Object.entries<{ $ref?: string }>(responses)) {
        if (Number(status) < 400) continue;
        expect($ref).toBe(`#/components/responses/${status}`);
        told.add(status);
      }
    }
    expect(Object.keys(page.components.responses).sort()).toEqual([...told].sort());
  });

  test("has examples for parameters, bodies, versions and answers", () => {
    const page = JSON.parse(JSON.stringify(describeApi(version)));
    const { parameters, requestBody, responses } = page.paths["/v1/tasks/{task}"].patch;
    const shown = Object.fromEntries(parameters.map(({ name, example }: Record<string, unknown>) => [name, example]));
    expect(shown).toEqual({ task: "settle", "if-match": '"1"', "idempotency-key": undefined });
    const { task, ...body } = examples.editTask?.given ?? {};
    expect([task, requestBody.content["application/json"].example]).toEqual(["settle", body]);
    expect(responses[200].content["application/json"].example).toEqual(examples.editTask?.answer);
    expect(Object.keys(body)).toEqual(["options", "reason"]);
  });

  test("names the discriminator of each union, and maps each of its values", () => {
    const page = JSON.parse(JSON.stringify(describeApi(version)));
    const found: string[][] = [];
    const look = (part: unknown) => {
      if (typeof part !== "object" || part === null) return;
      Object.values(part).forEach(look);
      const { oneOf, discriminator } = part as { oneOf?: { $ref: string }[]; discriminator?: Discriminator };
      if (!oneOf) return;
      const { propertyName = "", mapping = {} } = discriminator ?? {};
      for (const [value, $ref] of Object.entries(mapping)) {
        const { properties, required } = page.components.schemas[$ref.split("/").at(-1) ?? ""];
        const { const: tag, enum: tags = [tag] } = properties[propertyName];
        expect([value, tags, required]).toEqual([
          value,
          expect.arrayContaining([value]),
          expect.arrayContaining([propertyName]),
        ]);
      }
      expect(new Set(Object.values(mapping))).toEqual(new Set(oneOf.map(({ $ref }) => $ref)));
      found.push([propertyName, ...Object.keys(mapping)]);
    };
    look(page);
    expect(found.toSorted()).toEqual([
      ["type", "cron", "every", "interval", "rrule", "at", "manual"],
      ["type", "ended", "more", "tasks", "operations", "leadership", "resync"],
      ["type", "line", "end"],
      ["type", "listening", ...runEventTypes],
    ]);
  });

  test("and the client import nothing that browsers lack", () => {
    const seen = new Set<string>();
    const foreign: string[] = [];
    const follow = (file: string) => {
      if (seen.has(file)) return;
      seen.add(file);
      const text = readFileSync(join(here, file), "utf8");
      for (const [, kind = "", specifier = ""] of text.matchAll(
        /^(import type|import|export)[^;]*? from "([^"]+)";/gms,
      )) {
        if (kind === "import type") continue;
        if (specifier.startsWith(".")) follow(posix.join(posix.dirname(file), specifier));
        else if (specifier !== "zod") foreign.push(`${file}: ${specifier}`);
      }
    };
    follow("client.ts");
    expect(foreign).toEqual([]);
    expect(seen.size).toBeGreaterThan(8);
  });
});

describe("the client", () => {
  test("puts arguments into the path, the query or the body", () => {
    const given = { task: "a/b c", reason: "why?" };
    expect(partsOf(shapeOf("pauseTask"), given)).toEqual({
      path: "/v1/tasks/a%2Fb%20c/pause",
      query: "",
      body: { reason: "why?" },
    });
    const runs = { state: ["failed", "cancelled"], limit: 5, task: undefined };
    expect(partsOf(shapeOf("listRuns"), runs)).toEqual({
      path: "/v1/runs",
      query: "?state=failed&state=cancelled&limit=5",
      body: undefined,
    });
  });

  test("reads events however the stream is split into chunks", () => {
    const sent = `: beat\n\n${eventText({ a: "x\ny" }, "7")}${eventText([1])}data: {\r\ndata: "b":2}\r\n\r\n`;
    for (const size of [1, 2, 7, 1_000]) {
      const reader = new EventReader();
      const read: unknown[] = [];
      for (let at = 0; at < sent.length; at += size)
        for (const data of reader.read(sent.slice(at, at + size))) read.push(JSON.parse(data));
      expect(read).toEqual([{ a: "x\ny" }, [1], { b: 2 }]);
    }
  });
});
