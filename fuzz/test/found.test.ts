import { describe, expect, it } from "vitest";
import { mix } from "../../scheduler/src/base/random.ts";
import { importKubernetes } from "../../scheduler/src/importers/kubernetes.ts";
import { targets } from "../src/targets.ts";

const deep = (levels: number): unknown => JSON.parse("[".repeat(levels) + "]".repeat(levels)) as unknown;
const cyclic: { own?: unknown } = {};
cyclic.own = cyclic;

const event = (...lines: string[]) =>
  ["BEGIN:VCALENDAR", "BEGIN:VEVENT", "UID:1", ...lines, "END:VEVENT", "END:VCALENDAR", ""].join("\r\n");

const provider = { issuer: "https://l.example", clientId: "c", clientSecret: "s", url: "https://c.example" };
const own = "s".repeat(43);
const begun = `Host: x\r\nCookie: carillon-attempt=${own}.${own}.${own}`;
/** Returns random letters that cannot be compressed, so that a long text does not fit into an index page. */
const letters = (length: number) => Array.from({ length }, (_, at) => mix(7, at).toString(36).slice(-1)).join("");
const saying = (claims: { sub: string; name: string }) => ({
  claims,
  header: { alg: "RS256", kid: "k" },
  text: null,
  query: `code=c&state=${own}`,
  token: { access_token: "a", token_type: "Bearer", id_token: "" },
  person: { sub: claims.sub, groups: ["ops"] },
});

const answer = (run: object) =>
  JSON.stringify({
    session: 7,
    nowMs: Date.now(),
    tookMs: 0,
    sureForMs: 5_000,
    recalls: [],
    refused: [],
    lost: [],
    runs: [
      {
        runId: 1,
        fence: 1,
        task: "settle",
        attempt: 1,
        dueInMs: 0,
        dueMs: Date.now(),
        slotMs: null,
        priority: 5,
        key: null,
        payload: null,
        shard: null,
        state: null,
        ...run,
      },
    ],
    tasks: [
      {
        task: "settle",
        taskId: 1,
        version: 1,
        timeoutMs: null,
        graceMs: 1,
        onWorkerLost: "retry",
        retry: null,
      },
    ],
  });

/** Inputs that once revealed a bug: the target, what happened, and the input. Feeding them must not fail again. */
const found: [target: string, was: string, input: unknown][] = [
  ["calendars", "an error of the library's", event("DTSTART:20260502T100000Z", "RECURRENCE-ID:\u000020260501T100000")],
  ["calendars", "a hang", event("DTSTART:20260501T100000", "DURATION:P2147483647DT3H")],
  ["calendars", "9 s", event("DTSTART:00010101T000000", "RRULE:FREQ=MONTHLY;BYDAY=-1MO")],
  ["contract", "a TypeError, and status 500", { at: 0, params: {}, query: { constructor: "x" }, body: {} }],
  ["contract", "a TypeError", { at: 0, params: JSON.parse('{"__proto__": "x"}'), query: {}, body: {} }],
  ["task-files", "a stack overflow", `tasks:\n  a: { slotPayload: ${"[".repeat(5_000)}`],
  ["task-files", "a stack overflow", `tasks: ${"{a: ".repeat(5_000)}`],
  [
    "import-pg-boss",
    "a file that cannot be read",
    JSON.stringify([{ name: "a", cron: "* * * * *", data: deep(1_500) }]),
  ],
  ["import-bullmq", "a RangeError", JSON.stringify({ a: [{ key: "x", name: "x", every: 60_000, offset: 9e15 }] })],
  ["import-bullmq", "a RangeError", JSON.stringify({ a: [{ key: "x", name: "x", every: 60_000, endDate: -9e15 }] })],
  [
    "client-answers",
    "an error without a message",
    { status: 500, text: JSON.stringify({ code: "TASK_UNKNOWN", detail: "", hint: "y", status: 404 }), after: null },
  ],
  ["options", "a TypeError", { of: "worker", given: { server: [["http://127.0.0.1:7373"]], key: "ck_1_abc" } }],
  ["options", "a TypeError", { of: "calendar", given: { zone: "Europe/Berlin", weekend: [6, 0] } }],
  ["options", "a RangeError", { of: "calendar", given: { zone: "UTC", weekend: [], holidays: new Array(2) } }],
  ["options", "a TypeError", { of: "calendar", given: { zone: "UTC", weekend: [6, 5n], holidays: [] } }],
  ["options", "a TypeError", { of: "alarms", given: { channels: { ops: { webhook: Object.create(null) } } } }],
  ["schedules", "a TypeError", { value: { cron: Object.create(null) }, fromMs: 0 }],
  ["options", "a TypeError", { of: "enqueue", given: { at: Object.create(null) } }],
  ["options", "a TypeError", { of: "zookeeper", given: { sessionTimeoutMs: Symbol("s") } }],
  ["task-options", "a TypeError", { name: cyclic, given: {} }],
  ["task-options", "a TypeError", { name: "a", given: null }],
  ["task-options", "a TypeError", { name: "a", given: { retry: { attempts: 2, jitter: Object.create(null) } } }],
  ["task-options", "a TypeError", { name: Symbol("s"), given: { schedule: "0 2 * * *" } }],
  ["tasks", "a TypeError", { name: "a", written: { command: { argv: ["x"], env: null } } }],
  ["tasks", "a list with holes", { name: "a", written: { http: { url: "https://a.b/", okStatuses: new Array(2) } } }],
  ["tasks", "a list with holes", { name: "a", written: { command: { argv: new Array(2) } } }],
  ["options", "a TypeError", { of: "enqueue", given: { tx: null } }],
  ["tasks", "another task once it was stored", { name: "a", written: { after: new Array(2) } }],
  ["durations", "a TypeError", 5n],
  ["phrases", "a message of 200,000 characters", `at ${"y".repeat(200_000)}`],
  ["addresses", "a message of 100,000 characters", `redis+${"x".repeat(100_000)}://h`],
  ["terminal-text", "half of a character, and a line too wide", { text: "\0\0\0\u{2fffe}", width: 3 }],
  ["payloads", "a stack overflow for who reads it", deep(3_000)],
  ["cron-words", "words that were too long to be read", { text: "10-50/10 8-18 1-7 */3 8 1-7 */3", zone: "UTC" }],
  [
    "calendars",
    "a hang",
    event("DTSTART:20260501T100000", "RRULE:FREQ=MONTHLY;BYDAY=-1MO;BYMONTH=201T000000Z;INTERVAL=2"),
  ],
  [
    "provider-claims",
    "a TypeError",
    { options: { ...provider, rules: [{ claim: "g", role: "admin", in: Object.create(null) }] }, said: {} },
  ],
  ["provider-claims", "a TypeError", { options: { ...provider, rules: new Array(1) }, said: {} }],
  ["client-answers", "a SyntaxError", { status: 200, text: "<html>", after: null }],
  ["client-answers", "a TypeError", { status: 502, text: "null", after: null }],
  ["client-answers", "a TypeError", { status: 404, text: '{"code":"TASK_UNKNOWN","detail":5}', after: null }],
  ["payload-schemas", "a RangeError", { schema: { anyOf: [{ $ref: "#" }] }, payload: "x" }],
];

/** Inputs with which a server with an identity provider once answered 500: the target, what happened, and the input. */
const ofSignIns: [target: string, was: string, input: unknown][] = [
  ["provider-answers", "the store cannot keep a NUL", saying({ sub: "9\0", name: "nul" })],
  ["provider-answers", "the store's index cannot keep so much", saying({ sub: letters(6_000), name: "long" })],
  [
    "http-bytes",
    "an address that is none",
    `GET http://[x/v1/sign-in/provided?state=${own} HTTP/1.1\r\n${begun}\r\n\r\n`,
  ],
];

describe("inputs that once exposed a bug no longer do", () => {
  it.each(found)("%s: %s", async (name, _, input) => {
    const target = targets.find((one) => one.name === name);
    await target?.feed(input);
    expect(target).toBeDefined();
  });

  it("sign-ins: each such input is refused with a documented error", async () => {
    const targetOf = (name: string) => targets.find((one) => one.name === name);
    const close = await targetOf("provider-answers")?.open?.();
    try {
      for (const [name, , input] of ofSignIns) await targetOf(name)?.feed(input);
    } finally {
      await close?.();
    }
    expect(close).toBeDefined();
  });

  it("workers: an answer with a run that cannot be queued does not end the process", async () => {
    const target = targets.find(({ name }) => name === "worker-client");
    const close = await target?.open?.();
    try {
      for (const run of [{ priority: 99 }, { priority: 0.5 }, { dueMs: "x" }])
        await target?.feed({ status: 200, texts: [answer(run)] });
    } finally {
      await close?.();
    }
    expect(close).toBeDefined();
  });

  it("kubernetes: nested aliases and deep nesting are reported as problems", () => {
    const bomb = "a: &a [x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nitems: [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n";
    for (const text of [bomb, `a: ${"{b: ".repeat(5_000)}`])
      expect(importKubernetes([{ path: "x.yaml", text }], { zone: "UTC", nowMs: 0 }).remarks).toMatchObject([
        { kind: "problem" },
      ]);
  });
});
