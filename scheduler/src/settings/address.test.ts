import { describe, expect, it } from "vitest";
import { isLoopback, parseAddress } from "./address.ts";

describe("a process's address", () => {
  it.each([
    ["10.0.0.7:7373", "10.0.0.7:7373"],
    ["10.7:80", "10.0.0.7:80"],
    ["Node-1.Example.:7373", "node-1.example:7373"],
    ["my_host:1", "my_host:1"],
    ["bücher.example:65535", "xn--bcher-kva.example:65535"],
    ["[2001:DB8:0:0::7]:7373", "[2001:db8::7]:7373"],
    ["localhost:07373", "localhost:7373"],
  ])("%s is normalised to %s", (text, normal) => expect(parseAddress(text)).toBe(normal));

  it.each([
    "",
    "host",
    ":7373",
    "host:",
    "host:0",
    "host:65536",
    "host:123456",
    "host:7x",
    "http://host:7373",
    "a b:1",
    "2001:db8::7:7373",
    "[2001:db8::7]",
    "[2001:db8::zz]:1",
    "[fe80::1%eth0]:1",
    "[]:1",
    "1.2.3.4.5:1",
    "256.1.1.1:1",
    "host/path:1",
    "user@host:1",
    "-a.example:1",
    "a..b:1",
    "%41:1",
    "0.0.0.0:7373",
    "[::]:7373",
    "0:7373",
    "x\0y:1",
  ])("%j is refused", (text) => {
    expect(() => parseAddress(text)).toThrow(
      expect.objectContaining({ code: "OPTION_INVALID", hint: expect.stringContaining("host:port") }),
    );
  });

  it("is recognised as loopback if every machine resolves it to itself", () => {
    const own = ["localhost:1", "a.localhost:1", "127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1"];
    expect(own.map(parseAddress).map(isLoopback)).toEqual(own.map(() => true));
    const others = ["10.0.0.1:1", "localhost.example:1", "[2001:db8::1]:1", "a127.example:1"];
    expect(others.map(parseAddress).map(isLoopback)).toEqual(others.map(() => false));
  });
});
