import { describe, expect, it } from "vitest";
import { decodeInstance, encodeInstance, instanceOf, uriOf } from "./instance.ts";
import { random, roundRobin, sticky } from "./strategies.ts";
import { parseUriSpec } from "./uri-spec.ts";

const invalid = (code: string) => expect.objectContaining({ code });

describe("a service instance", () => {
  const plain = { name: "svc", id: "id-1", address: "10.0.0.7", registrationTimeUTC: 1_700_000_000_000 };

  /** The expected texts were written by Curator 5.4's JsonInstanceSerializer. */
  it.each([
    [
      { ...plain, port: 8080 },
      '{"name":"svc","id":"id-1","address":"10.0.0.7","port":8080,"sslPort":null,"payload":null,"registrationTimeUTC":1700000000000,"serviceType":"DYNAMIC","uriSpec":null}',
    ],
    [
      { ...plain, port: 8080, payload: 'text é " / </>\u2028\u0001\u001f\\u001f' },
      '{"name":"svc","id":"id-1","address":"10.0.0.7","port":8080,"sslPort":null,"payload":"text é \\" / </>\u2028\\u0001\\u001F\\\\u001f","registrationTimeUTC":1700000000000,"serviceType":"DYNAMIC","uriSpec":null}',
    ],
    [
      { ...plain, payload: { "@class": "java.util.LinkedHashMap", version: "1.2", weight: 3, list: [1, "a"] } },
      '{"name":"svc","id":"id-1","address":"10.0.0.7","port":null,"sslPort":null,"payload":{"@class":"java.util.LinkedHashMap","version":"1.2","weight":3,"list":[1,"a"]},"registrationTimeUTC":1700000000000,"serviceType":"DYNAMIC","uriSpec":null}',
    ],
    [
      {
        ...plain,
        sslPort: 8443,
        serviceType: "PERMANENT" as const,
        uriSpec: "{scheme}://{address}/a/{name}",
        enabled: false,
      },
      '{"name":"svc","id":"id-1","address":"10.0.0.7","port":null,"sslPort":8443,"payload":null,"registrationTimeUTC":1700000000000,"serviceType":"PERMANENT","uriSpec":{"parts":[{"value":"scheme","variable":true},{"value":"://","variable":false},{"value":"address","variable":true},{"value":"/a/","variable":false},{"value":"name","variable":true}]},"enabled":false}',
    ],
  ])("is written with the same bytes as Curator's, and read back", (given, json) => {
    const instance = instanceOf<unknown>(given);
    expect(encodeInstance(instance)).toBe(json);
    expect(decodeInstance(Buffer.from(json), "/svc/id-1")).toEqual(instance);
  });

  it("has Curator's defaults", () => {
    const beganMs = Date.now();
    const { id, address, registrationTimeUTC, ...rest } = instanceOf({ name: "svc" });
    expect(id).toMatch(/^[\da-f-]{36}$/);
    expect(address).toMatch(/^\d+\.\d+\.\d+\.\d+$/);
    expect(registrationTimeUTC).toBeGreaterThanOrEqual(beganMs);
    expect(registrationTimeUTC).toBeLessThanOrEqual(Date.now());
    const none = { port: null, sslPort: null, payload: null, uriSpec: null };
    expect(rest).toEqual({ name: "svc", ...none, serviceType: "DYNAMIC", enabled: true });
    const least = decodeInstance(Buffer.from('{"name":"svc","id":"a","unknown":1}'), "/svc/a");
    expect(least).toEqual({ ...rest, id: "a", address: null, registrationTimeUTC: 0 });
  });

  it("is refused if invalid", () => {
    for (const name of ["a/b", "", ".."]) expect(() => instanceOf({ name })).toThrow(invalid("PATH_INVALID"));
    expect(() => instanceOf({ name: "svc", id: "a/b" })).toThrow(invalid("PATH_INVALID"));
    expect(() => instanceOf({ name: "svc", port: 65_536 })).toThrow(invalid("OPTION_INVALID"));
    expect(() => instanceOf({ name: "svc", serviceType: "LOST" as never })).toThrow(invalid("OPTION_INVALID"));
    for (const text of ["", "x", "null", '{"name":"svc"}', "[]"]) {
      expect(() => decodeInstance(Buffer.from(text), "/svc/x")).toThrow(invalid("DATA_INVALID"));
    }
  });

  it("builds its URI", () => {
    const uriSpec = "{scheme}://{address}:{port}/{ id }/{service-type}/{own}{[}{registration-time-utc}{]}{ssl-port}";
    const uri = uriOf(instanceOf({ ...plain, port: 80, uriSpec }), { own: "O" });
    expect(uri).toBe("http://10.0.0.7:80/id-1/dynamic/O{1700000000000}");
    expect(uriOf(instanceOf({ ...plain, sslPort: 443, uriSpec: "{scheme}:{port}:{ssl-port}" }))).toBe("https::443");
    expect(() => uriOf(instanceOf({ ...plain, uriSpec }))).toThrow(invalid("OPTION_INVALID"));
    expect(() => uriOf(instanceOf(plain))).toThrow(invalid("DATA_INVALID"));
    for (const spec of ["{a", "a}", "{a{b}}"]) expect(() => parseUriSpec(spec)).toThrow(invalid("OPTION_INVALID"));
  });
});

describe("a strategy", () => {
  const all = ["a", "b", "c"].map((id) => instanceOf<unknown>({ name: "svc", id }));
  const ids = (strategy: ReturnType<typeof random>, instances = all) => strategy(instances)?.id;

  it("goes round-robin, chooses at random, or sticks to one instance", () => {
    const round = roundRobin();
    expect([1, 2, 3, 4].map(() => ids(round))).toEqual(["a", "b", "c", "a"]);
    let chance = 0;
    const next = random(() => chance);
    expect(ids(next)).toBe("a");
    chance = 0.999;
    expect(ids(next)).toBe("c");
    const stays = sticky(roundRobin());
    expect([ids(stays), ids(stays)]).toEqual(["a", "a"]);
    expect(ids(stays, all.slice(1))).toBe("c"); // c is the second of the two remaining instances
    expect(ids(stays)).toBe("c");
  });
});
