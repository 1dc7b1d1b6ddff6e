import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { writes } from "../../src/api/contract/route.ts";
import { type RouteId, routeIds, shapeOf } from "../../src/api/contract.ts";
import { readYaml } from "../../src/apply/read.ts";
import { sortedJson } from "../../src/base/json.ts";
import { defineTask, type TaskDefinition } from "../../src/task/task.ts";
import { ApiStage } from "../support/api-stage.ts";
import { said } from "../support/remote-stage.ts";
import { lineOf, placesOf, requestWith } from "../support/requests.ts";

const stage = new ApiStage();
let token = "";
beforeAll(async () => {
  await stage.open();
  token = stage.tokens.admin;
  await stage.client().createTask({ task: "there", options: { command: { argv: ["/usr/bin/true"] } } });
});
afterAll(() => stage.close());

/** Texts that a page, a shell, a database, a log or a parser might misinterpret. The store can store all of them. */
const texts = [
  `<script>alert(1)</script><img src=x onerror=alert(1)>"'\`javascript:alert(1)//`,
  `'; drop table task; -- " or 1=1 /* $1 \\ %_ \${7*7} {{7*7}}`,
  "\u0001\u0007\u001b[31m\u001b]0;x\u0007\r\nset-cookie: a=b\u0085\u2028\u202e\ufeff\u007f",
  "__proto__",
  "constructor",
  "../../../etc/passwd\\..\\%2e%2e/%00",
  "ünïcödé 𝕋𝕖𝕩𝕥 👩‍👩‍👧 \u0000".replace("\u0000", "0"),
];
/** Texts that the store cannot store, so the server refuses them. */
const refused = ["a\0b", "half \ud83d of a pair", "\udc00"];
const long = { params: "x".repeat(1_000), query: "x".repeat(5_000), body: "x".repeat(70_000) };
/** Parts of most elements of `texts`, joined; short enough for a name. */
const mixed = [texts[0]?.slice(0, 60), texts[1]?.slice(0, 60), texts[2]?.slice(0, 40), texts[5]]
  .join(" ")
  .slice(0, 190);
const numbers = [-1, 2 ** 31, Number.MAX_SAFE_INTEGER, 1.5];
const jsons = [{ __proto__: null, constructor: { prototype: { polluted: 1 } } }, nested(1_000), [...texts, 1e308]];

function nested(depth: number): unknown {
  let made: unknown = 1;
  for (let n = 0; n < depth; n++) made = n % 2 ? [made] : { a: made };
  return made;
}

/** Valid requests that name existing objects, so that they reach the store. */
const right: Partial<Record<RouteId, { params?: object; body?: object }>> = {
  enqueueRuns: { body: { runs: [{ task: "there" }] } },
  previewOperation: { body: { kind: "pause", filter: { task: "there" } } },
  beginOperation: { body: { kind: "resume", filter: { task: "there" } } },
  createUser: { body: { name: "someone", password: "a long enough password", role: "viewer" } },
  createTask: { params: { task: "there" }, body: { options: {} } },
  applyBundle: { body: { plan: "*", adopt: true, tasks: [{ task: "there", options: {} }] } },
};
/** Routes that are not called: they would end the test's own session or lock out the test's user. */
const left = new Set<RouteId>(["signIn", "signOut", "changePassword", "revokeToken", "endSignIn", "endSignInsOf"]);
/** Routes that validate a task's options with the same code as other routes, so one hostile value in each place is enough. */
const again = new Set<RouteId>(["defineTask", "planBundle", "applyBundle"]);
const leaks = /node_modules|\.ts:\d|at \w+ \(|select |insert into|syntax error|pg_|of undefined|of null/i;

describe("every route", () => {
  test("handles any value in every part of a request without an internal error, and discloses no internals", async () => {
    const asked: { routeId: RouteId; line: { path: string; body?: unknown }; what: unknown }[] = [];
    for (const routeId of routeIds) {
      const shape = shapeOf(routeId);
      if (left.has(routeId) || shape.event) continue;
      const params = shape.params && "task" in shape.params.shape ? { params: { task: "there" } } : {};
      for (const place of placesOf(routeId)) {
        const values =
          place.kind === "number"
            ? numbers
            : place.kind === "json"
              ? jsons
              : [mixed, "__proto__", "a\0b", "half \ud83d", long[place.part]];
        const known = again.has(routeId) && place.path.includes("options");
        for (const what of known ? values.slice(0, 1) : values)
          asked.push({
            routeId,
            what,
            line: lineOf(routeId, requestWith(routeId, place, what, { ...params, ...right[routeId] })),
          });
      }
    }
    expect(asked.length).toBeGreaterThan(1_000);
    const statuses = new Map<number, number>();
    const wrong: string[] = [];
    const next = asked[Symbol.iterator]();
    const askSome = async () => {
      for (const { routeId, line, what } of next) {
        const headers = { "if-match": "*" };
        const by = {
          token,
          headers,
          ...(writes(shapeOf(routeId)) && line.body !== undefined ? { body: line.body } : {}),
        };
        const found = await wrongOf(stage.ask(shapeOf(routeId).method, line.path, by), what);
        if (found !== undefined)
          wrong.push(`${routeId} ${line.path.slice(0, 99)} ${JSON.stringify(what)?.slice(0, 99)}: ${found}`);
      }
    };
    const wrongOf = async (asking: ReturnType<ApiStage["ask"]>, what: unknown): Promise<string | undefined> => {
      try {
        const { status, body } = await asking;
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
        const told =
          status >= 400 ? String(body.detail).replaceAll(typeof what === "string" ? what.slice(0, 20) : "-", "") : "";
        return status === 500 || leaks.test(told) ? `${status} ${told}` : undefined;
      } catch (error) {
        // The client throws for a response that the OpenAPI document does not describe.
        return String(error).slice(0, 500);
      }
    };
    await Promise.all(Array.from({ length: 8 }, askSome));
    expect(wrong).toEqual([]);
    expect([...statuses.keys()]).toEqual(expect.arrayContaining([200, 201, 400, 404]));
    expect(stage.lines.filter(({ message }) => /by a bug/.test(message))).toEqual([]);
    expect(({} as { polluted?: number }).polluted).toBeUndefined();
    expect(await stage.rows("select count(*) > 0 as there from $s.task")).toEqual([{ there: true }]);
  });

  test("keeps a key __proto__ like any other key of a JSON value, in every input", async () => {
    const text = '{"__proto__":{"x":1},"b":[{"__proto__":null}],"constructor":{"prototype":{"x":1}}}';
    const value = JSON.parse(text);
    const kept = (read: unknown) => sortedJson(read);
    await stage.task("proto");
    const { run } = await stage.client().runTask({ task: "proto", payload: value });
    const { runId } = await stage.server.enqueue("proto", value);
    for (const id of [run, runId]) expect(kept((await stage.client().getRun({ run: id })).payload)).toBe(kept(value));

    const key = await stage.key("proto");
    const session = await stage.join(key, { tasks: ["proto"] });
    const { runs } = await stage.poll(key, { session, want: 2, waitMs: 20_000 });
    expect(runs.map(({ payload }) => kept(payload))).toEqual([kept(value), kept(value)]);
    const verdicts = runs.map((given) => said(given, { outcome: "succeeded", result: value }));
    await stage.poll(key, { session, verdicts, leave: true });
    expect(kept((await stage.client().getRun({ run })).result)).toBe(kept(value));

    const yaml = `tasks:\n  from-file: { slotPayload: ${text} }\n`;
    const { tasks, problems } = readYaml("proto.yaml", yaml);
    expect(problems).toEqual([]);
    await stage.server.save(tasks[0]?.definition as TaskDefinition);
    await stage.client().createTask({ task: "from-api", options: { slotPayload: value } });
    for (const task of ["from-file", "from-api"])
      expect(kept((await stage.client().getTask({ task })).definition.slotPayload)).toBe(kept(value));
    const labels = JSON.parse('{"__proto__":"a"}');
    await expect(stage.client().createTask({ task: "labelled", options: { labels } })).rejects.toMatchObject({
      code: "REQUEST_INVALID",
      path: "labels.__proto__",
    });
    expect(() => defineTask("labelled", { labels })).toThrow(/labels must hold texts/);
    await expect(stage.client().getTask({ task: ".." })).rejects.toMatchObject({
      code: "REQUEST_INVALID",
      path: "task",
    });
    expect(({} as { x?: number }).x).toBeUndefined();
  });

  test("returns storable values unchanged, and refuses values that cannot be stored", async () => {
    const api = stage.client();
    for (const [n, text] of texts.entries()) {
      const task = `kept-${n}`;
      const options = {
        command: { argv: ["/usr/bin/printf", text] },
        description: text,
        slotPayload: { [`a${text}`]: text },
      };
      await api.createTask({ task, options, reason: text });
      const { definition, description } = await api.getTask({ task });
      expect([definition.command, definition.slotPayload, description]).toMatchObject([
        { argv: ["/usr/bin/printf", text] },
        { [`a${text}`]: text },
        text,
      ]);
      expect((await api.listTaskVersions({ task })).items).toMatchObject([{ reason: text }]);
      const { run } = await api.runTask({ task, payload: [text], key: text, in: "1d", reason: text });
      expect(await api.getRun({ run })).toMatchObject({ payload: [text], key: text });
      await api.cancelRun({ run, reason: text });
      expect((await api.getRun({ run })).error).toMatchObject({ message: text });
      expect((await api.listAudit({ about: "run", named: String(run) })).items).toMatchObject([
        { why: text },
        { why: text },
      ]);
    }
    for (const text of [...refused, "deep"]) {
      const given = { task: "kept-0", payload: text === "deep" ? nested(1_000) : { [text]: 1 } };
      await expect(api.runTask(given)).rejects.toMatchObject({ code: "REQUEST_INVALID" });
    }
    for (const number of ["12345678901234567890", "9007199254740993", "1e400"]) {
      const answer = await fetch(`${stage.urlOf()}/v1/tasks/kept-0/runs`, {
        method: "POST",
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
        body: `{"payload":{"items":[{"amount":${number}}]}}`,
      });
      expect([answer.status, await answer.json()]).toMatchObject([
        400,
        { code: "PAYLOAD_NOT_JSON", path: "payload.items.0.amount", detail: expect.stringContaining(number) },
      ]);
    }
    const { run } = await api.runTask({ task: "kept-0", payload: "[".repeat(5_000), in: "1d" });
    expect((await api.getRun({ run })).payload).toHaveLength(5_000);
  });
});

describe("guessing tokens", () => {
  test("soon costs the store almost nothing, and does not slow down holders of valid tokens", async () => {
    const from = (n: number) => ({ "x-forwarded-for": `10.9.${n}.1` });
    const server = await stage.serve({ behindProxy: true });
    let guesses = 0;
    const wrong = () => stage.tokens.admin.replace(/.{43}$/, `${guesses++}`.padEnd(43, "a"));
    const ask = (given: string, n = 1) => stage.ask("GET", "/v1/me", { token: given, headers: from(n) }, server);
    const codes: string[] = [];
    for (let n = 0; n < 21; n++) codes.push((await ask(wrong())).body.code);
    expect(codes.slice(0, 19)).toEqual(Array(19).fill("SIGN_IN_NEEDED"));
    const { status, body, headers } = await ask(wrong());
    expect([status, body.code, Number(headers.get("retry-after"))]).toEqual([
      429,
      "TOO_MANY_ATTEMPTS",
      expect.toSatisfy((s: number) => s >= 1 && s <= 60),
    ]);
    // A token that this address has not used before has to wait like a wrong one. A token that the server knows from this address, or a
    // request from another address, does not wait.
    const flood = Promise.all(Array.from({ length: 100 }, () => ask(wrong())));
    expect((await ask(stage.tokens.viewer)).status).toBe(200);
    expect((await ask(stage.tokens.viewer)).status).toBe(200);
    expect((await ask(wrong(), 2)).body.code).toBe("SIGN_IN_NEEDED");
    expect((await flood).every((one) => one.status === 429)).toBe(true);
  });
});
