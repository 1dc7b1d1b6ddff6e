import { describe, expect, it } from "vitest";
import { AllowList, plainAddress } from "./allow-list.ts";

const permits = (entries: string[], host: string, address: string, port = 443) =>
  new AllowList(entries).permits(host, port, address);
const publicAddress = "93.184.215.14";

describe("host names", () => {
  it.each([
    ["api.example.com", "api.example.com", true],
    ["API.example.com", "api.example.com", true],
    ["api.example.com", "example.com", false],
    ["api.example.com", "api.example.com.evil.test", false],
    ["api.example.com", "evil-api.example.com", false],
    ["*.example.com", "a.example.com", true],
    ["*.example.com", "a.b.example.com", true],
    ["*.example.com", "example.com", false],
    ["*.example.com", "evilexample.com", false],
    ["*", "anything.test", true],
    ["*", publicAddress, false],
  ])("%s and %s: %s", (entry, host, expected) => {
    expect(permits([entry], host, publicAddress)).toBe(expected);
    expect(new AllowList([entry]).mayResolve(host, 443)).toBe(expected);
  });

  it("apply to one port, or to all", () => {
    expect(permits(["api.test:8443"], "api.test", publicAddress, 8443)).toBe(true);
    expect(permits(["api.test:8443"], "api.test", publicAddress, 443)).toBe(false);
    expect(permits(["10.0.0.0/8:80"], "10.1.1.1", "10.1.1.1", 80)).toBe(true);
    expect(permits(["10.0.0.0/8:80"], "10.1.1.1", "10.1.1.1", 5432)).toBe(false);
    expect(permits(["[::1]:80"], "::1", "::1", 80)).toBe(true);
    expect(permits(["[::1]:80"], "::1", "::1", 81)).toBe(false);
  });

  it("are refused by an empty list", () => {
    expect(permits([], "api.test", publicAddress)).toBe(false);
    expect(new AllowList([]).mayResolve("api.test", 443)).toBe(false);
  });
});

/** Private, local and reserved addresses, to which an allowed host name must not resolve. */
const inside = [
  ..."0.0.0.0 0.1.2.3 10.0.0.1 100.64.0.1 100.127.255.255 127.0.0.1 127.255.255.254 169.254.169.254 172.16.0.1".split(
    " ",
  ),
  ..."172.31.255.255 192.0.0.1 192.0.2.1 192.88.99.1 192.168.1.1 198.18.0.1 198.19.255.255 198.51.100.1".split(" "),
  ..."203.0.113.9 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255".split(" "),
  ..."::1 :: ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:a9fe:a9fe ::127.0.0.1 64:ff9b::7f00:1 64:ff9b:1::1 100::1".split(
    " ",
  ),
  ..."fc00::1 fd00:ec2::254 fe80::1 fec0::1 ff02::1 2001::1 2001:db8::1 2002:7f00:1:: 3fff::1 4000::1".split(" "),
];

describe("a listed host name that resolves to an internal address", () => {
  it.each(inside)("is refused for %s", (address) => {
    expect(permits(["*", "api.test"], "api.test", address)).toBe(false);
  });
  it.each(["8.8.8.8", "172.15.255.255", "172.32.0.1", "100.63.255.255", "2606:2800:220:1::1", "::ffff:8.8.8.8"])(
    "is allowed for %s, which is public",
    (address) => expect(permits(["api.test"], "api.test", address)).toBe(true),
  );
  it("is allowed if the address is listed too", () => {
    expect(permits(["api.test", "10.1.0.0/16"], "api.test", "10.1.2.3")).toBe(true);
    expect(permits(["10.1.0.0/16"], "api.test", "10.1.2.3")).toBe(true);
    expect(permits(["api.test", "10.1.0.0/16"], "api.test", "10.2.0.1")).toBe(false);
  });
  it.each(["fe80::1%eth0", "", "localhost", "1.2.3", "0x7f000001"])(
    "is refused for an invalid address: %j",
    (address) => {
      expect(permits(["*", "0.0.0.0/0", "::/0"], "api.test", address)).toBe(false);
    },
  );
});

describe("address ranges", () => {
  it.each([
    ["10.1.2.3", "10.1.2.3", true],
    ["10.1.2.3", "10.1.2.4", false],
    ["10.1.0.0/16", "::ffff:10.1.9.9", true],
    ["::ffff:10.1.2.3", "10.1.2.3", true],
    ["0.0.0.0/0", "169.254.169.254", true],
    ["0.0.0.0/0", "::1", false],
    ["::/0", "::1", true],
    ["::/0", "127.0.0.1", false],
    ["fd00::/8", "fd12::1", true],
    ["fd00::/8", "fe80::1", false],
    ["::1", "0:0:0:0:0:0:0:1", true],
  ])("%s and %s: %s", (entry, address, expected) => {
    expect(permits([entry], address, address)).toBe(expected);
  });

  it("compare addresses in a canonical form", () => {
    expect(plainAddress("::FFFF:127.0.0.1")).toBe("127.0.0.1");
    expect(plainAddress("0:0:0:0:0:ffff:7f00:1")).toBe("127.0.0.1");
    expect(plainAddress("2001:DB8::0:1")).toBe("2001:db8::1");
  });
});

it.each(
  [
    "",
    " ",
    "https://api.example.com",
    "api.example.com/path",
    "api.example.com:0",
    "api.example.com:99999",
    "api.example.com:",
    "user@host",
    "10.0.0.0/33",
    "10.0.0.0/",
    "10.0.0.0/8/8",
    "::/129",
    "::ffff:10.0.0.0/104",
    "2130706433",
    "0x7f.1",
    "017700000001",
    "127.1",
    "*.*.example.com",
    "a.*.example.com",
    "**",
    "[api.example.com]",
    "exa mple.com",
    "-x.example.com",
  ].map((entry) => [entry]),
)("%j is refused as a list entry", (entry) => {
  expect(() => new AllowList([entry])).toThrow(expect.objectContaining({ code: "OPTION_INVALID" }));
});
