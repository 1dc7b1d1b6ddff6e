import { createHmac } from "node:crypto";
import { describe, expect, test } from "vitest";
import { type HookScheme, hookSchemes } from "./hook.ts";
import { verifyRequest } from "./verify.ts";

const refused = expect.objectContaining({ code: "HOOK_REFUSED" });
const check = (
  scheme: HookScheme,
  secret: string,
  headers: Record<string, string>,
  body: string,
  nowMs = 0,
  tolerance?: string,
) => verifyRequest({ scheme, tolerance }, secret, { headers, raw: Buffer.from(body) }, nowMs);
const hmac = (secret: string, text: string) => createHmac("sha256", secret).update(text);

describe("a request is verified", () => {
  test("as GitHub signs it: by the example of GitHub's documentation", () => {
    const secret = "It's a Secret to Everybody";
    const signature = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
    const by = (text: string, body = "Hello, World!", key = secret) =>
      check("github", key, { "x-hub-signature-256": text }, body);
    by(`sha256=${signature}`);
    for (const [text, ...rest] of [
      [`sha256=${signature}`, "Hello, World?"],
      [`sha256=${signature}`, "Hello, World!", "another secret"],
      [`sha256=${signature.replace("7", "8")}`],
      [`sha256=${signature.slice(2)}`],
      [`sha1=${signature}`],
      [signature],
      [""],
    ] as const)
      expect(() => by(text, ...rest), text).toThrow(refused);
    expect(() => check("github", secret, {}, "Hello, World!")).toThrow(refused);
  });

  test("as Standard Webhooks has it: by the example of its specification, within the tolerance", () => {
    const headers = {
      "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
      "webhook-timestamp": "1614265330",
      "webhook-signature": "v2,eA== v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    };
    const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const body = '{"test": 2432232314}';
    const signedMs = 1_614_265_330_000;
    const by = (more: object, nowMs = signedMs, tolerance?: string) =>
      check("standard", secret, { ...headers, ...more }, body, nowMs, tolerance);
    by({});
    by({}, signedMs + 300_000);
    by({}, signedMs - 300_000);
    by({}, signedMs + 3_600_000, "1h");
    expect(() => by({}, signedMs + 300_001)).toThrow(
      expect.objectContaining({ code: "HOOK_REFUSED", message: expect.stringContaining("300 s") }),
    );
    expect(() => by({}, signedMs - 300_001)).toThrow(refused);
    for (const more of [
      { "webhook-id": "msg_other" },
      { "webhook-timestamp": "1614265331" },
      { "webhook-signature": "v1,AAAA" },
      { "webhook-signature": headers["webhook-signature"].replaceAll("v1,", "v3,") },
      { "webhook-signature": "" },
    ])
      expect(() => by(more), JSON.stringify(more)).toThrow(refused);
    const plain = {
      ...headers,
      "webhook-signature": `v1,${hmac("plain secret", `${headers["webhook-id"]}.1614265330.${body}`).digest("base64")}`,
    };
    check("standard", "plain secret", plain, body, signedMs);
  });

  test("as Stripe signs it, by any of its signatures, within the tolerance", () => {
    const [secret, body, nowMs] = ["whsec_stripe", '{"id":"evt_1"}', 1_700_000_000_000];
    const v1 = hmac(secret, `1700000000.${body}`).digest("hex");
    const by = (text: string, now = nowMs) => check("stripe", secret, { "stripe-signature": text }, body, now);
    by(`t=1700000000,v1=${v1}`);
    by(`t=1700000000, v1=${"0".repeat(64)},v1=${v1},v0=x`);
    for (const text of [`t=1700000001,v1=${v1}`, `t=1700000000,v0=${v1}`, `v1=${v1}`, "t=1700000000", ""])
      expect(() => by(text), text).toThrow(refused);
    expect(() => by(`t=1700000000,v1=${v1}`, nowMs + 301_000)).toThrow(refused);
    const noTime = hmac(secret, `soon.${body}`).digest("hex");
    expect(() => by(`t=soon,v1=${noTime}`), "signed, with no time").toThrow(refused);
  });

  test("by a bearer secret", () => {
    const by = (authorization: string) => check("bearer", "a long secret", { authorization }, "{}");
    by("Bearer a long secret");
    for (const text of [
      "Bearer a long secre",
      "Bearer a long secret!",
      "Basic a long secret",
      "a long secret",
      "Bearer ",
      "",
    ])
      expect(() => by(text), text).toThrow(refused);
  });

  test("with one HMAC over its body by each scheme, so that the time of a refusal does not tell a hook's scheme", () => {
    for (const scheme of hookSchemes) {
      const given = Buffer.from("{}");
      let read = 0;
      const request = {
        headers: {},
        get raw() {
          read++;
          return given;
        },
      };
      expect(() => verifyRequest({ scheme }, "a secret", request, 0)).toThrow(refused);
      expect([scheme, read]).toEqual([scheme, 1]);
    }
  });
});
