import { hostname } from "node:os";
import { expect, it } from "vitest";
import { isOpenToAll, serviceAddress } from "./service-address.ts";

it("keeps the service's address and its cluster path, and no secret", () => {
  expect(serviceAddress("zookeeper://me:pass@zk1:2181,zk2:2181/billing?auth=sasl")).toBe(
    "zookeeper://zk1:2181,zk2:2181/billing",
  );
  expect(serviceAddress("redis+sentinel://u:p@s1,s2/main/1?sentinelPassword=secret&prefix=b")).toBe(
    "redis+sentinel://s1,s2/main/1?prefix=b",
  );
});

it("differs on each machine if the host name is a loopback address", () => {
  for (const host of ["localhost:6379", "127.0.0.1", "zk1,[::1]:2181"])
    expect(serviceAddress(`redis://${host}`)).toBe(`redis://${host} on ${hostname()}`);
});

it.each([
  ["redis://r.example:6379", true],
  ["redis://r.example/0?prefix=a", true],
  ["redis://user@r.example", true],
  ["redis://user:@r.example", true],
  ["redis://:pass@r.example", false],
  ["rediss://user:p@ss@r.example", false],
  ["redis+sentinel://s1,s2/main?sentinelPassword=p", true],
  ["redis+cluster://user:pass@a,b", false],
  ["zookeeper://zk1:2181,zk2:2181/billing", true],
  ["zookeeper://me:pass@zk1:2181,zk2:2181/billing?auth=sasl", false],
  ["zookeeper://127.0.0.1:2181,zk2:2181/billing", true],
  ["zookeeper://127.0.0.1:2181,[::1]:2182/billing", false],
  ["redis://localhost", false],
])("%s is reachable without a password: %s", (url, expected) => {
  expect(isOpenToAll(url)).toBe(expected);
});
