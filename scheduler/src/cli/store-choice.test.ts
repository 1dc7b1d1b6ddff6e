import { resolve } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { silentLog } from "../base/log.ts";
import { settingsOf } from "../settings/settings.ts";
import { chosenReach } from "./reach.ts";
import { deciding, type NodeOptions } from "./running.ts";
import {
  chosenCoordination,
  chosenUrl,
  coordinationText,
  lookingOptions,
  placeText,
  urlPlace,
} from "./store-choice.ts";

const url = (name: string) => `postgres://user:secret@${name}/app`;

const named = [
  "CARILLON_STORE",
  "DATABASE_URL",
  "CARILLON_DIRECTORY",
  "CARILLON_COORDINATION",
  "CARILLON_REQUIRE_TLS",
] as const;
type Environment = Partial<Record<(typeof named)[number], string>>;

/** Sets the given environment variables and deletes all other variables that name a store or a service. */
function inEnvironment(given: Environment): void {
  for (const name of named) {
    delete process.env[name];
    if (given[name] !== undefined) process.env[name] = given[name];
  }
}

const before: Environment = { ...process.env };
afterEach(() => inEnvironment(before));

describe("the store", () => {
  it("comes from the option, then the file, then the environment, and is otherwise the embedded one", () => {
    inEnvironment({});
    expect(chosenUrl({ color: true })).toBeUndefined();
    inEnvironment({ DATABASE_URL: url("database") });
    expect(chosenUrl({ color: true })).toBe(url("database"));
    inEnvironment({ DATABASE_URL: url("database"), CARILLON_STORE: url("carillon") });
    expect(chosenUrl({ color: true })).toBe(url("carillon"));
    expect(chosenUrl({ color: true }, { store: url("file") })).toBe(url("file"));
    expect(chosenUrl({ color: true, store: url("option") }, { store: url("file") })).toBe(url("option"));
  });

  it("is the folder of a task file, ahead of the environment and the configuration", () => {
    inEnvironment({ DATABASE_URL: url("database"), CARILLON_DIRECTORY: "there" });
    const file = { path: "carillon.config.yaml", values: { store: url("config") } };
    const role = { scheduler: true, worker: true };
    const decide = (more: Partial<NodeOptions>) =>
      deciding({ color: true, logLevel: "info", file, ...more }, silentLog, role)({ directory: "own" });
    expect(decide({})).toMatchObject({ store: "embedded", directory: "own" });
    expect(decide({ store: url("option") })).toMatchObject({ store: url("option") });
  });

  it("is the embedded one if requested; otherwise only carillon dev uses it, and no server", () => {
    inEnvironment({ CARILLON_STORE: "embedded", DATABASE_URL: url("database") });
    expect(chosenUrl({ color: true })).toBeUndefined();
    expect(lookingOptions({ color: true })).toMatchObject({ store: "embedded" });
    expect(chosenUrl({ color: true, store: "embedded" }, { store: url("file") })).toBeUndefined();
    inEnvironment({});
    const decide = (worker: boolean) =>
      deciding({ color: true, logLevel: "info" }, silentLog, { scheduler: true, worker })({});
    expect(decide(true)).toMatchObject({ store: "embedded" });
    expect(decide(false)).not.toHaveProperty("store");
  });

  it("is not invented if a file's store is undefined, unless the operator names a store or folder, or in dev", () => {
    inEnvironment({});
    const decide = (over: Partial<NodeOptions>, worker: boolean) =>
      deciding({ color: true, logLevel: "info", ...over }, silentLog, { scheduler: true, worker })({
        store: undefined,
      });
    expect(() => settingsOf(decide({}, false))).toThrow("store is undefined");
    expect(decide({ directory: "here" }, false)).not.toHaveProperty("store");
    expect(decide({ store: url("option") }, false)).toMatchObject({ store: url("option") });
    expect(decide({}, true)).toMatchObject({ store: "embedded" });
  });

  it("is the folder on the command line, even if a URL is configured elsewhere", () => {
    inEnvironment({ DATABASE_URL: url("database"), CARILLON_STORE: url("carillon") });
    const file = { path: "carillon.config.yaml", values: { store: url("config") } };
    const asked = { color: true, directory: "here", file };
    expect(chosenReach(asked)).toEqual({ kind: "store", from: "--directory" });
    expect(lookingOptions(asked)).not.toHaveProperty("store");
    expect(lookingOptions(asked)).toMatchObject({ directory: "here" });
    const node = { ...asked, logLevel: "info" } as NodeOptions;
    const decided = deciding(node, silentLog, { scheduler: true, worker: true })({ store: url("file") });
    expect(decided).toMatchObject({ store: "embedded", directory: "here" });
    expect(chosenUrl({ ...asked, store: url("option") })).toBe(url("option"));
  });

  it("is the folder in the environment, ahead of the configuration but behind the environment's URLs", () => {
    const asked = { color: true, file: { path: "carillon.config.yaml", values: { store: url("config") } } };
    inEnvironment({ CARILLON_DIRECTORY: "there" });
    expect(chosenReach(asked)).toEqual({ kind: "store", from: "CARILLON_DIRECTORY" });
    expect(lookingOptions(asked)).not.toHaveProperty("store");
    expect(lookingOptions(asked)).toMatchObject({ directory: "there" });
    inEnvironment({ CARILLON_DIRECTORY: "there", DATABASE_URL: url("database") });
    expect(chosenReach(asked)).toEqual({ kind: "store", from: "DATABASE_URL" });
    expect(lookingOptions(asked)).toMatchObject({ store: url("database") });
  });

  it("is refused without TLS by every command if TLS is required", () => {
    inEnvironment({ CARILLON_REQUIRE_TLS: "1" });
    const looking = lookingOptions({ color: true, store: "postgres://db.example/app" });
    expect(() => settingsOf(looking)).toThrow(expect.objectContaining({ code: "OPTION_INVALID", path: "store" }));
    inEnvironment({});
    expect(lookingOptions({ color: true, store: "postgres://db.example/app" })).not.toHaveProperty("requireTls");
  });

  it("is shown without its password", () => {
    expect(urlPlace("postgres://me:secret@db.example:6432/app?sslmode=require")).toBe("db.example:6432/app");
    expect(urlPlace("postgres:///app?host=/run/postgresql")).toBe("/run/postgresql:5432/app");
    expect(urlPlace("nonsense with secret")).toBe("the store");
    expect(urlPlace("postgres://me:secret@db.example/a%zz")).toBe("db.example:5432/a%zz");
  });

  it("is shown with its own folder, whether a flag, a variable or a file names it", () => {
    const inFolder = (directory: string) => placeText(undefined, { version: "18.4", directory });
    expect(inFolder(resolve("own"))).toBe("embedded PostgreSQL 18 in own");
    expect(inFolder("/var/lib/elsewhere")).toBe("embedded PostgreSQL 18 in /var/lib/elsewhere");
  });
});

describe("the coordination service", () => {
  const zookeeper = (host: string) => `zookeeper://${host}:2181/a`;

  it("comes from the option, then the file, then the environment, and is otherwise none", () => {
    inEnvironment({});
    expect(chosenCoordination({})).toBeUndefined();
    inEnvironment({ CARILLON_COORDINATION: zookeeper("environment") });
    expect(chosenCoordination({})).toBe(zookeeper("environment"));
    expect(chosenCoordination({}, zookeeper("file"))).toBe(zookeeper("file"));
    expect(chosenCoordination({ coordination: zookeeper("option") }, zookeeper("file"))).toBe(zookeeper("option"));
  });

  it("is shown without its password", () => {
    expect(coordinationText("zookeeper://me:sec@ret@zk1:2181,zk2:2181/billing")).toBe(
      "ZooKeeper at zk1:2181,zk2:2181/billing",
    );
    expect(coordinationText("rediss://:s/e/c@r.example:6380/1?password=x")).toBe("Redis at r.example:6380/1");
    expect(coordinationText("\u001b[2J")).not.toContain("\u001b");
  });
});

describe("a file's Carillon options under the command line", () => {
  const options = (over: Partial<NodeOptions>): NodeOptions => ({ color: true, logLevel: "info", ...over });

  it("apply where the operator gave no option", () => {
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

  it("give way to the operator's options, except that allowed programs are combined", () => {
    const given = {
      store: url("file"),
      schema: "a",
      concurrency: 7,
      labels: { disk: "big" },
      commands: { allow: ["echo"] },
    };
    const asked = {
      store: url("option"),
      schema: "b",
      concurrency: 2,
      coordination: "zookeeper://option/a",
      failFast: true,
      label: [["zone", "eu-1"]] as [string, string][],
      name: "atlas",
      group: ["x"],
      allow: ["date"],
      shell: true,
    };
    expect(deciding(options(asked), silentLog, { scheduler: false, worker: true })(given)).toMatchObject({
      store: url("option"),
      schema: "b",
      concurrency: 2,
      name: "atlas",
      groups: ["x"],
      scheduler: false,
      coordination: "zookeeper://option/a",
      failFast: true,
      labels: { disk: "big", zone: "eu-1" },
      commands: { allow: ["echo", "date"], shell: true },
    });
  });
});
