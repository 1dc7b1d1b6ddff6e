import { expect, test } from "vitest";
import { parseConfig } from "./ensemble.ts";

test("a configuration is parsed into its version and each server's client address", () => {
  const text = [
    "server.1=zk1:2888:3888:participant;0.0.0.0:2181",
    "server.2=10.0.0.2:2888:3888:observer;10.1.0.2:2182",
    "server.3=[fe80::3]:2888:3888:participant;[::]:2181",
    "server.4=zk4:2888:3888:participant;2184",
    "server.5=zk5:2888:3888",
    "group.1=1:2",
    "version=10000002a",
  ].join("\n");
  const { version, servers } = parseConfig(Buffer.from(text));
  expect(version).toBe(0x10000002an);
  expect(servers.map(({ id, client }) => [id, client])).toEqual([
    ["1", "zk1:2181"],
    ["2", "10.1.0.2:2182"],
    ["3", "[fe80::3]:2181"],
    ["4", "zk4:2184"],
    ["5", undefined],
  ]);
  expect(servers[0]?.text).toBe(text.split("\n")[0]);
});

test("the configuration of a standalone server has no servers", () => {
  expect(parseConfig("")).toEqual({ version: 0n, servers: [] });
});
