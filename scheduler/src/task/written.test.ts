import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { taskOptions } from "../api/contract/task-options.ts";
import { at, cron, every, manual } from "../schedule/schedule.ts";
import { defineTask, definitionText, type TaskOptions } from "./task.ts";
import { fieldChanges, givenOptions, readWritten, writtenTask } from "./written.ts";

const span = fc.integer({ min: 1_000, max: 10_000_000 });
const maybe = <T>(one: fc.Arbitrary<T>) => fc.option(one, { nil: undefined });
const schedule = fc.oneof(
  fc.constant(manual),
  fc
    .record({
      expression: fc.constantFrom("0 2 * * *", "*/5 * * * *", "0 0 0 L * ?", "15 10 * * MON-FRI"),
      zone: fc.constantFrom("UTC", "Asia/Shanghai", "America/New_York"),
      gap: maybe(fc.constantFrom("skip" as const, "shift" as const)),
      overlap: maybe(fc.constantFrom("first" as const, "last" as const, "both" as const)),
      jitter: maybe(fc.integer({ min: 1, max: 60_000 })),
      jitterBy: fc.constantFrom("slot" as const, "task" as const),
    })
    .map(({ expression, jitterBy, ...options }) =>
      cron(expression, options.jitter ? { ...options, jitterBy } : options),
    ),
  span.map((ms) => every(ms)),
  span.map((ms) => every(ms, { mode: "delay", jitter: 500 })),
  span.map((ms) => every(ms, { anchor: 86_400_001 })),
  fc.integer({ min: 0, max: 4_000_000_000_000 }).map((ms) => at(ms)),
);
const rated = (schedule: { type: string; mode?: string }) => !(schedule.type === "every" && schedule.mode === "delay");

const options: fc.Arbitrary<TaskOptions> = fc
  .record(
    {
      description: fc.string(),
      group: fc.constantFrom("default", "reports"),
      schedule,
      slotPayload: fc.oneof(fc.constant({ ledger: "eu", list: [1, null] }), fc.constant("text"), fc.constant(7)),
      priority: fc.integer({ min: 0, max: 9 }),
      timeout: fc.oneof(span, fc.constant(null)),
      retry: fc.oneof(
        fc.integer({ min: 1, max: 9 }),
        fc.record(
          {
            attempts: fc.integer({ min: 1, max: 9 }),
            backoff: fc.constantFrom("fixed" as const, "exponential" as const),
            delay: span,
            maxDelay: span,
            jitter: fc.constantFrom(0, 0.2, 1),
          },
          { requiredKeys: ["attempts"] },
        ),
      ),
      misfire: fc.oneof(
        fc.constantFrom("fire_once" as const, "skip" as const, "all" as const),
        fc.record(
          {
            policy: fc.constant("all" as const),
            after: span,
            cap: fc.integer({ min: 1, max: 99 }),
            perSecond: fc.integer({ min: 1, max: 9 }),
          },
          { requiredKeys: ["policy"] },
        ),
      ),
      onWorkerLost: fc.constantFrom("retry" as const, "fail" as const, "ask" as const),
      grace: span,
      history: fc.constantFrom("all" as const, "failures" as const),
      command: fc.constant({ argv: ["/bin/true", "a b"], env: { LANG: "C" }, okExitCodes: [0, 3] }),
      http: fc.constantFrom(
        { url: "https://a.example/x" },
        {
          url: "https://a.example/x",
          method: "PUT" as const,
          headers: { B: "1", A: "2" },
          body: { a: 1 },
          okStatuses: [200],
          redirects: 2,
          timeout: "5s",
        },
      ),
    },
    { requiredKeys: [] },
  )
  .chain((base) =>
    fc
      .record(
        {
          overlap: fc.constantFrom(
            "allow" as const,
            "queue" as const,
            "skip" as const,
            { allow: 3 },
            { queue: 2 },
            { allow: 3, queue: 1 },
          ),
          route: fc.constantFrom("any" as const, "sticky" as const, { pin: "atlas" }, { hash: "key" as const }),
          labels: fc.constant({ gpu: "a100" }),
          ...(rated(base.schedule ?? manual)
            ? {
                calendar: fc.constantFrom(
                  { name: "de" },
                  { name: "de", on: "holidays" as const, otherwise: "next" as const },
                ),
                blackout: fc.constant([
                  { from: "22:00", to: "04:00", zone: "Asia/Shanghai", days: ["fri", "sun"] },
                  // biome-ignore lint/suspicious/noThenProperty: an option's name.
                  { from: "2026-12-24T12:00:00Z", to: "2026-12-27T00:00:00Z", then: "delay" as const },
                ]),
              }
            : {}),
        },
        { requiredKeys: [] },
      )
      .map((more) => ({ ...base, ...more }) as TaskOptions),
  );

describe("a task in the file format", () => {
  it("reads as the definition that it was written from, through YAML and JSON values", () => {
    fc.assert(
      fc.property(options, (some) => {
        const definition = defineTask("t", some);
        const written = JSON.parse(JSON.stringify(writtenTask(definition)));
        expect(definitionText(readWritten("t", written))).toBe(definitionText(definition));
        // The contract of the HTTP API must accept the same options.
        const given = taskOptions.parse(JSON.parse(JSON.stringify(givenOptions(definition)))) as TaskOptions;
        expect(definitionText(defineTask("t", given))).toBe(definitionText(definition));
      }),
      { numRuns: 300 },
    );
  });

  it.each([
    [{ limit: { perKey: 2 }, rate: { limit: 5, per: "1m", key: true } }],
    [{ after: "fetch" }],
    [{ after: { tasks: ["a", "b"], on: "any" as const } }],
    [{ route: { shards: 4 } }],
    [{ overlap: "replace" as const, route: "broadcast" as const, misfire: "skip" as const }],
  ] satisfies [TaskOptions][])("writes %j unchanged", (given) => {
    if ("overlap" in given) delete (given as TaskOptions).overlap;
    expect(writtenTask(defineTask("t", given))).toEqual(given);
  });

  it("leaves out default values", () => {
    expect(writtenTask(defineTask("t"))).toEqual({});
    expect(writtenTask(defineTask("t", { schedule: cron("0 2 * * *"), retry: 3, timeout: "90m" }))).toEqual({
      schedule: { cron: "0 2 * * *", zone: "UTC" },
      retry: 3,
      timeout: "1h30m",
    });
  });

  it.each([
    ["retry.attempts", { retry: { attempts: "x" } }],
    ["timeout", { timeout: "soon" }],
    ["schedule", { schedule: { cron: "61 * * * *" } }],
    ["schedule", { schedule: { cron: "0 2 * * *", zone: "Moon/Base" } }],
    ["schedule", { schedule: { every: "5m", at: "2027-01-01T00:00:00Z" } }],
    ["schedule", { schedule: { at: "tomorrow" } }],
    ["schedule.zone", { schedule: { at: "2027-01-01T00:00:00Z", zone: "UTC" } }],
    ["schedule", { schedule: 5 }],
    ["colour", { colour: "red" }],
    ["http.hedaers", { http: { url: "https://a.example", hedaers: {} } }],
    ["overlap", { overlap: null }],
    ["command", { command: "/bin/true" }],
    ["command.argv", { command: { argv: "/bin/true" } }],
    ["", ["list"]],
    [
      "blackout[1].zone",
      {
        blackout: [
          { from: "01:00", to: "02:00" },
          { from: "01:00", to: "02:00", zone: "Moon" },
        ],
      },
    ],
    // biome-ignore lint/suspicious/noThenProperty: an option's name.
    ["blackout[0].then", { blackout: [{ from: "01:00", to: "02:00", then: "stop" }] }],
    ["calendar.on", { calendar: { name: "de", on: "mondays" } }],
    ["labels", { labels: { gpu: 1 } }],
    ["rate.per", { rate: { limit: 5, per: "soon" } }],
    ["route.pin", { route: { pin: "" } }],
    ["payloadSchema", { payloadSchema: [] }],
    ["after.on", { after: { tasks: "a", on: "sometimes" } }],
    ["limit.perKey", { limit: { perKey: 1 }, overlap: "skip" }],
  ])("reports the path of a mistake: %s", (path, written) => {
    let thrown: unknown;
    try {
      readWritten("t", written);
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toMatchObject({ code: expect.stringMatching(/_/), hint: expect.stringMatching(/\w/), path });
  });

  it("lists differences by field, in the file's format", () => {
    const before = defineTask("t", { schedule: cron("0 2 * * *"), retry: { attempts: 3 }, slotPayload: { a: 1 } });
    const after = defineTask("t", {
      schedule: cron("0 3 * * *"),
      retry: { attempts: 3, delay: "5s" },
      timeout: "2h",
      slotPayload: { a: 2 },
    });
    expect(fieldChanges(before, after)).toEqual([
      { path: "schedule.cron", was: "0 2 * * *", is: "0 3 * * *" },
      { path: "slotPayload", was: { a: 1 }, is: { a: 2 } },
      { path: "timeout", was: null, is: "2h" },
      { path: "retry", was: 3, is: { attempts: 3, delay: "5s" } },
    ]);
    expect(
      fieldChanges(
        after,
        defineTask("t", {
          schedule: every("5m"),
          retry: { attempts: 4, delay: "5s" },
          timeout: "2h",
          slotPayload: { a: 2 },
        }),
      ),
    ).toEqual([
      { path: "schedule", was: { cron: "0 3 * * *", zone: "UTC" }, is: { every: "5m" } },
      { path: "retry.attempts", was: 3, is: 4 },
    ]);
  });
});
