import { describe, expect, it, vi } from "vitest";
import { type CarillonOptions, settingsOf } from "./settings.ts";

describe("options", () => {
  it("have consistent defaults: the horizon is longer than an election, a session longer than a heartbeat", () => {
    const settings = settingsOf({});
    expect(settings).toMatchObject({
      schema: "carillon",
      name: null,
      scheduler: true,
      worker: true,
      groups: null,
      concurrency: 100,
      failFast: false,
      handleSignals: true,
    });
    expect(settings.horizonMs).toBeGreaterThan(2 * settings.sessionTimeoutMs);
    expect(settings.beatMs, "what is left is enough to try again").toBeLessThanOrEqual(
      settings.sessionTimeoutMs - 2_500,
    );
    expect(settings.keepMs).toBe(30 * 86_400_000);
    expect(settings.commands).toEqual({ allow: [], allowEnv: [], shell: false, rehearse: false });
  });

  it("define what a scheduler does if cluster time went back: it waits, or does not start", () => {
    expect([settingsOf({}).clockBack, settingsOf({ clockBack: "refuse" }).clockBack]).toEqual(["wait", "refuse"]);
    const wrong = expect.objectContaining({
      code: "OPTION_INVALID",
      path: "clockBack",
      hint: "Give one of wait, refuse.",
    });
    expect(() => settingsOf({ clockBack: "never" as "wait" })).toThrow(wrong);
  });

  it("have no default store in production: an unset variable is an error, not a private database", () => {
    vi.stubEnv("NODE_ENV", "production");
    try {
      const refused = expect.objectContaining({
        code: "OPTION_INVALID",
        path: "store",
        hint: expect.stringContaining("embedded"),
      });
      expect(() => settingsOf({ store: process.env.NO_SUCH_VARIABLE })).toThrow(refused);
      expect(() => settingsOf({})).toThrow(refused);
      for (const asked of [{ store: "embedded" }, { directory: "here" }, { store: "postgres://db/app" }])
        expect(settingsOf(asked).schema).toBe("carillon");
    } finally {
      vi.unstubAllEnvs();
    }
    expect(settingsOf({}).schema, "elsewhere it is told in a line of the log").toBe("carillon");
  });

  it("refuse an undefined store everywhere, and name a variable with a postgres:// URL as a hint", () => {
    const refusal = (options: CarillonOptions) => {
      try {
        settingsOf(options);
      } catch (error) {
        return error;
      }
      return undefined;
    };
    const refused = (hint: unknown) =>
      expect.objectContaining({ code: "OPTION_INVALID", message: "store is undefined", path: "store", hint });
    const before = process.env;
    process.env = {};
    try {
      const unset = refused(expect.stringContaining("an environment variable that is not set"));
      expect(refusal({ store: undefined })).toEqual(unset);
      expect(refusal({ store: undefined, directory: "here" })).toEqual(unset);
      process.env.CARILLON_LISTEN_URL = "postgres://direct/app";
      expect(refusal({ store: undefined }), "that is not where the store is").toEqual(unset);
      process.env.A_REPLICA = "postgresql://me:geheim@replica/app";
      expect(refusal({ store: undefined })).toEqual(refused(expect.stringContaining("process.env.A_REPLICA")));
      process.env.POSTGRES_URL = "postgres://me:geheim@db/app";
      expect(refusal({ store: undefined })).toEqual(refused(expect.stringContaining("process.env.POSTGRES_URL")));
      process.env.DATABASE_URL = "postgres://me:geheim@db/app";
      expect(refusal({ store: undefined })).toEqual(refused(expect.stringContaining("process.env.DATABASE_URL")));
      expect(refusal({ store: undefined }), "no URL is shown").toEqual(refused(expect.not.stringContaining("geheim")));
      expect(refusal({})).toBeUndefined();
    } finally {
      process.env = before;
    }
  });

  it("with a longer session timeout have longer dependent intervals", () => {
    const settings = settingsOf({ sessionTimeout: "20s" });
    expect(settings).toMatchObject({ sessionTimeoutMs: 20_000, horizonMs: 50_000 });
    expect(settingsOf({ sessionTimeout: "7s" }).beatMs).toBe(4_500);
    expect(settingsOf({ sessionTimeout: "2s" }).beatMs, "half of a short one").toBe(1_000);
    expect(settings.beatMs, "but not how long a lost signal goes unnoticed").toBe(5_000);
    expect(settingsOf({ sessionTimeout: "20s", horizon: "40s" }).horizonMs).toBe(40_000);
    expect(() => settingsOf({ sessionTimeout: "20s", horizon: "39s" }), "shorter than an election").toThrow(
      expect.objectContaining({ code: "DURATION_INVALID" }),
    );
  });

  it.each<[string, object, string]>([
    ["store", { store: "mysql://x" }, "OPTION_INVALID"],
    ["schema", { schema: "a-b" }, "OPTION_INVALID"],
    ["commands.allowEnv", { commands: { allowEnv: ["*"] } }, "OPTION_INVALID"],
    ["commands.allowEnv", { commands: { allowEnv: ["A=b"] } }, "OPTION_INVALID"],
    ["schema", { schema: "x".repeat(49) }, "OPTION_INVALID"],
    ["schema", { schema: "1a" }, "OPTION_INVALID"],
    ["concurrency", { concurrency: 0 }, "OPTION_INVALID"],
    ["concurrency", { concurrency: 10_001 }, "OPTION_INVALID"],
    ["connections", { connections: 1 }, "OPTION_INVALID"],
    ["connections", { connections: 2.5 }, "OPTION_INVALID"],
    ["labels", { labels: { "no name ": "x" } }, "OPTION_INVALID"],
    ["labels", { labels: { zone: 7 } }, "OPTION_INVALID"],
    ["labels", { labels: { zone: "x".repeat(201) } }, "OPTION_INVALID"],
    ["labels", { labels: ["zone"] }, "OPTION_INVALID"],
    ["labels", { labels: Object.fromEntries(Array.from({ length: 33 }, (_, i) => [`l${i}`, ""])) }, "OPTION_INVALID"],
    ["stroe", { stroe: "x" }, "OPTION_INVALID"],
    ["name", { name: "a b" }, "TASK_INVALID"],
    ["sessionTimeout", { sessionTimeout: "1s" }, "DURATION_INVALID"],
    ["retention", { retention: "1m" }, "DURATION_INVALID"],
    ["horizon", { horizon: "10ms" }, "DURATION_INVALID"],
    ["claimAhead", { claimAhead: -1 }, "DURATION_INVALID"],
    ["drain", { drain: "long" }, "DURATION_INVALID"],
  ])("refuses a wrong %s: %j", (part, options, code) => {
    expect(() => settingsOf(options as CarillonOptions)).toThrow(
      expect.objectContaining({ code, message: expect.stringContaining(part) }),
    );
  });

  it("do not show a URL's password in an error", () => {
    expect(() => settingsOf({ store: "mysql://me:secret@x" })).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining("secret") }),
    );
  });
});
