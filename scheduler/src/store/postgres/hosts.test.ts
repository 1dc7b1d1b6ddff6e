import { describe, expect, it } from "vitest";
import { systemClock } from "../../base/clock.ts";
import { Hosts, type Looked } from "./hosts.ts";

describe("the host to connect to", () => {
  const hosts = ["a", "b", "c"].map((host) => ({ host, port: 1 }));
  const among = (looks: Record<string, Looked | string>) =>
    new Hosts(
      hosts,
      async ({ host }) => {
        const look = looks[host];
        if (typeof look === "object") return look;
        throw new Error(look);
      },
      systemClock,
    );
  const primary = { writable: true, timeline: 3 };
  const standby = { writable: false, timeline: null };

  it("is the one that accepts writes, at any position", async () => {
    expect(await among({ a: "ECONNREFUSED", b: standby, c: primary }).choose()).toMatchObject({ host: "c" });
  });

  it("is the one on the higher timeline if two accept writes, whichever answers first", async () => {
    const looks = { a: { writable: true, timeline: 2 }, b: primary, c: { writable: true, timeline: null } };
    expect(await among(looks).choose()).toMatchObject({ host: "b" });
  });

  it("is kept until it becomes doubtful", async () => {
    const looks: Record<string, Looked | string> = { a: primary, b: standby, c: standby };
    const chosen = among(looks);
    expect(await chosen.choose()).toMatchObject({ host: "a" });
    Object.assign(looks, { a: "ECONNREFUSED", b: { writable: true, timeline: 4 } });
    expect(await chosen.choose()).toMatchObject({ host: "a" });
    chosen.doubt();
    expect(await chosen.choose()).toMatchObject({ host: "b" });
  });

  it("is an error with each host's reason while no host accepts writes, and is searched again", async () => {
    const looks: Record<string, Looked | string> = { a: "ECONNREFUSED", b: standby, c: standby };
    const chosen = among(looks);
    await expect(chosen.choose()).rejects.toMatchObject({
      code: "STORE_READ_ONLY",
      message: expect.stringMatching(/none of the store's 3 hosts.*a:1: ECONNREFUSED.*b:1 is a standby/),
    });
    looks.b = primary;
    expect(await chosen.choose()).toMatchObject({ host: "b" });
    const gone = among({ a: "ECONNREFUSED", b: "ETIMEDOUT", c: "ENOTFOUND" });
    await expect(gone.choose()).rejects.toMatchObject({ code: "STORE_UNREACHABLE" });
  });

  it("is a permanent error if every host refuses for the same reason", async () => {
    const failure = (code: string) => Object.assign(new Error(`told by a server: ${code}`), { code });
    const codeOf = async (...codes: string[]) => {
      const left = [...codes];
      const chosen = new Hosts(hosts, () => Promise.reject(failure(left.shift() as string)), systemClock);
      return chosen.choose().catch((error) => [error.code, error.message]);
    };
    const message = expect.stringMatching(/none of the store's 3 hosts.*a:1: told.*c:1: told/);
    expect(await codeOf("28P01", "28P01", "28P01")).toEqual(["STORE_REFUSED", message]);
    const [own, unknown] = ["DEPTH_ZERO_SELF_SIGNED_CERT", "UNABLE_TO_VERIFY_LEAF_SIGNATURE"];
    expect(await codeOf(own, unknown, own)).toEqual(["STORE_TLS", message]);
    expect(await codeOf("28P01", "ECONNREFUSED", "28P01")).toEqual(["STORE_UNREACHABLE", message]);
  });
});
