import { describe, expect, it } from "vitest";
import { parseStoreUrl } from "./store-url.ts";

describe("a store's URL", () => {
  it.each([
    ["postgres://u:p@a:1,b:2/db", ["a:1", "b:2"], "postgres://u:p@a:1/db"],
    ["postgres://u:p@ss@a:1,b:2/db", ["a:1", "b:2"], "postgres://u:p@ss@a:1/db"],
    ["postgres://a/db?user=u@h", [], "postgres://a/db?user=u@h"],
    ["postgresql://a,b/db?target_session_attrs=read-write", ["a:5432", "b:5432"], "postgresql://a:5432/db"],
    ["postgres://a,[::1]:6/db?sslmode=require", ["a:5432", "::1:6"], "postgres://a:5432/db?sslmode=require"],
    ["postgres:///db?host=a,b&port=1,2", ["a:1", "b:2"], "postgres://a:1/db"],
    ["postgres:///db?host=a,b&port=1", ["a:1", "b:1"], "postgres://a:1/db"],
    ["postgres:///db?host=/run/a,/run/b", ["/run/a:5432", "/run/b:5432"], "postgres:///db?host=%2Frun%2Fa"],
    ["postgres://a/db?target_session_attrs=any", [], "postgres://a:5432/db"],
    ["postgres://a:7/db?sslmode=require", [], "postgres://a:7/db?sslmode=require"],
    ["/run/postgresql db", [], "/run/postgresql db"],
    ["postgres://u:p%@ss%25@a,b/d%", ["a:5432", "b:5432"], "postgres://u:p%@ss%25@a:5432/d%"],
    [
      "postgres:///db?host=/run/a%2525,/run/b",
      ["/run/a%25:5432", "/run/b:5432"],
      "postgres:///db?host=%2Frun%2Fa%2525",
    ],
  ])("%s", (text, hosts, url) => {
    const read = parseStoreUrl(text);
    expect([read.hosts.map(({ host, port }) => `${host}:${port}`), read.url]).toEqual([hosts, url]);
  });

  it.each([
    ["postgres://a,b/db?target_session_attrs=standby", /target_session_attrs cannot be "standby"/],
    ["postgres://a,,b/db", /host 2 of 3 is empty/],
    ["postgres://a:0,b/db", /the port of a is not from 1 to 65535/],
    ["postgres:///db?host=a,b,c&port=1,2", /3 hosts and 2 ports/],
    ["postgres://u:1/secret@a/db", /^store: it has an @ after its hosts$/],
    ["postgres://u:1?secret@a/db", /^store: it has an @ after its hosts$/],
    ["postgres://u:1#secret@a/db", /^store: it has an @ after its hosts$/],
    ["postgres://a%zz/db", /host 1 has a malformed escape/],
    ["postgres://a,b%ff/db", /host 2 has a malformed escape/],
    ["postgres://u:%ff@a/db", /user or password has a malformed escape/],
    ["postgres://a/%ff", /database has a malformed escape/],
    ["postgres://a/db?sslmode=verify-full&sslmode=disable", /"sslmode" more than once/],
  ])("%s is refused", (text, message) => {
    expect(() => parseStoreUrl(text)).toThrow(
      expect.objectContaining({ code: "OPTION_INVALID", path: "store", message: expect.stringMatching(message) }),
    );
  });
});
