import { expect, it } from "vitest";
import { withoutCredentials } from "./credentials.ts";

it.each([
  ["zookeeper://user:s@cret@zk1:2181,zk2:2181/path", "zookeeper://zk1:2181,zk2:2181/path"],
  ["redis+tls://:secret@h", "redis+tls://h"],
  ["ftp://user:sec\nret@h/x", "ftp://h/x"],
  ["user:secret@h", "h"],
  ["redis+sentinel://h/m?prefix=a&sentinelPassword=se@cret", "redis+sentinel://h/m?prefix=a&sentinelPassword="],
  ["postgres://me@h/app?password=secret&sslmode=require", "postgres://h/app?password=&sslmode=require"],
  ["https://h/x", "https://h/x"],
  ["", ""],
])("%j is shown as %j", (url, shown) => {
  expect(withoutCredentials(url)).toBe(shown);
});
