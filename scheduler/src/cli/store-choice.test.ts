import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { silentLog } from "../log.ts";
import { deciding, type NodeOptions } from "./running.ts";
import { chosenUrl, urlPlace } from "./store-choice.ts";

const url = (name: string) => `postgres://user:secret@${name}/app`;

beforeEach(() => {
  vi.stubEnv("CARILLON_STORE", undefined);
  vi.stubEnv("DATABASE_URL", undefined);
});
afterEach(() => {
  vi.unstubAllEnvs();
});

describe("the store", () => {
  it("is the option's, else the file's, else the environment's, else the embedded one", () => {
    expect(chosenUrl({ color: true })).toBeUndefined();
    vi.stubEnv("DATABASE_URL", url("database"));
    expect(chosenUrl({ color: true })).toBe(url("database"));
    vi.stubEnv("CARILLON_STORE", url("carillon"));
    expect(chosenUrl({ color: true })).toBe(url("carillon"));
    expect(chosenUrl({ color: true }, url("file"))).toBe(url("file"));
    expect(chosenUrl({ color: true, store: url("option") }, url("file"))).toBe(url("option"));
  });

  it("is named without its password", () => {
    expect(urlPlace("postgres://me:secret@db.example:6432/app?sslmode=require")).toBe("db.example:6432/app");
    expect(urlPlace("postgres:///app?host=/run/postgresql")).toBe("/run/postgresql:5432/app");
    expect(urlPlace("nonsense with secret")).toBe("the store");
  });
});

describe("a file's Carillon under the command line", () => {
  const options = (over: Partial<NodeOptions>): NodeOptions => ({ color: true, logLevel: "info", ...over });

  it("keeps what the operator left alone", () => {
    const decide = deciding(options({}), silentLog, { scheduler: true, worker: true });
    const decided = decide({
      store: url("file"),
      concurrency: 7,
      groups: ["gpu"],
      scheduler: false,
      handleSignals: true,
    });
    expect(decided).toMatchObject({
      store: url("file"),
      concurrency: 7,
      groups: ["gpu"],
      scheduler: true,
      handleSignals: false,
    });
  });

  it("obeys what the operator wrote, and adds the programs to those it allows", () => {
    const given = { store: url("file"), schema: "a", concurrency: 7, commands: { allow: ["echo"] } };
    const asked = {
      store: url("option"),
      schema: "b",
      concurrency: 2,
      name: "atlas",
      group: ["x"],
      allow: ["date"],
      shell: true,
    };
    expect(deciding(options(asked), silentLog, { scheduler: false, worker: true })(given)).toMatchObject({
      ...{ store: url("option"), schema: "b", concurrency: 2, name: "atlas", groups: ["x"], scheduler: false },
      commands: { allow: ["echo", "date"], shell: true },
    });
  });
});
