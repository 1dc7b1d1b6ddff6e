import { expect, it } from "vitest";
import { limits } from "../../base/limits.ts";
import { checkSecretName } from "../../task/names.ts";
import { Redactor } from "./redactor.ts";
import { makeSecretKey, SecretKeys } from "./secret-keys.ts";

const place = { name: "bank", version: 3 };
const value = 'open "sesame"\nline two of it';

it("a value opens only with its key, in its place, and unmodified", () => {
  const [one, two] = [makeSecretKey(), makeSecretKey()];
  const sealed = new SecretKeys([one]).seal(value, place);
  expect(new SecretKeys([two, one]).open(sealed, place)).toBe(value);
  const again = new SecretKeys([one]).seal(value, place);
  expect([again.wrapped, again.sealed], "neither key nor text comes twice").not.toEqual([
    sealed.wrapped,
    sealed.sealed,
  ]);
  expect(() => new SecretKeys([two]).open(sealed, place)).toThrow(
    expect.objectContaining({ code: "SECRET_KEY_MISSING" }),
  );
  for (const wrong of [
    { ...place, version: 4 },
    { ...place, name: "other" },
  ])
    expect(() => new SecretKeys([one]).open(sealed, wrong)).toThrow(
      expect.objectContaining({ code: "SECRET_INVALID" }),
    );
  for (const part of ["wrapped", "sealed"] as const)
    for (const at of [0, 13, sealed[part].length - 1]) {
      const changed = { ...sealed, [part]: Buffer.from(sealed[part].map((byte, i) => (i === at ? byte ^ 1 : byte))) };
      const open = () => new SecretKeys([one]).open(changed, place);
      expect(open).toThrow(expect.objectContaining({ code: "SECRET_INVALID" }));
    }
});

it("rewrapping encrypts the data key with the first key, and leaves the sealed value unchanged", () => {
  const [old, next] = [makeSecretKey(), makeSecretKey()];
  const sealed = new SecretKeys([old]).seal(value, place);
  const both = new SecretKeys([next, old]);
  const fresh = { ...sealed, ...both.rewrap(sealed, place) };
  expect(fresh.keyId).toBe(both.present);
  expect(new SecretKeys([next]).open(fresh, place)).toBe(value);
  expect(() => new SecretKeys([]).seal(value, place)).toThrow(expect.objectContaining({ code: "SECRET_KEY_MISSING" }));
});

it("an invalid key or secret name is refused, and the error does not contain the key", () => {
  const wrong = () => new SecretKeys(["c2hvcnQ="]);
  expect(wrong).toThrow(expect.objectContaining({ code: "OPTION_INVALID" }));
  expect(wrong).not.toThrow(/c2hvcnQ/);
  expect(() => checkSecretName("{{x}}")).toThrow(expect.objectContaining({ code: "SECRET_INVALID" }));
});

it("a secret that was handed out is redacted from texts, JSON and truncated output, and nothing else is changed", () => {
  const redactor = new Redactor();
  expect([redactor.text(value), redactor.json(null), redactor.active]).toEqual([value, null, false]);
  redactor.add("bank", value);
  redactor.add("pin", "12345678");
  expect(redactor.text(`<${value}>`)).toBe("<[secret bank]>");
  expect(redactor.text("it said: line two of it!"), "a line of it").toBe("it said: [secret bank]!");
  expect(redactor.text(Buffer.from(value).toString("base64"))).toMatch(/^\[secret bank\]=*$/);
  expect(redactor.text(`?q=${encodeURIComponent(value)}&x`)).toBe("?q=[secret bank]&x");
  expect(redactor.text('fails near open "sesa'), "cut").toBe("fails near [secret bank]");
  expect(redactor.text("fails near open")).toBe("fails near open");
  expect(JSON.parse(redactor.json(JSON.stringify({ [value]: [value, 12345678, 1234567, null, { a: "x" }] })))).toEqual({
    "[secret bank]": ["[secret bank]", "[secret pin]", 1234567, null, { a: "x" }],
  });
  expect([redactor.exposes('{"n":12345678}'), redactor.exposes('{"n":1234567}'), redactor.exposes(null)]).toEqual([
    true,
    false,
    false,
  ]);
  const told: unknown[] = [];
  const write = (fields: object, message: string) => void told.push([fields, message]);
  const log = redactor.log({ debug: write, info: write, warn: write, error: write });
  log.warn({ error: `no ${value}`, run: 3, more: { pin: 12345678 } }, "12345678");
  expect(told).toEqual([[{ error: "no [secret bank]", run: 3, more: { pin: "[secret pin]" } }, "[secret pin]"]]);
});

it("at most a thousand secrets are remembered; the next one evicts the oldest", () => {
  const redactor = new Redactor();
  for (let n = 0; n <= 1_000; n++) redactor.add(`s${n}`, `value number ${n}.`);
  expect(redactor.text("value number 0., value number 1000.")).toBe("value number 0., [secret s1000]");
});

it("the most recently used secrets stay redacted, whenever they were first used", () => {
  const redactor = new Redactor();
  redactor.add("often", "used in each run");
  for (let n = 1; n < limits.secretsRemembered; n++) redactor.add(`once-${n}`, `value number ${n} of many`);
  redactor.add("often", "used in each run");
  redactor.add("one-more", "used once");
  expect(redactor.text("it is: used in each run")).not.toContain("used in each run");
  expect(redactor.text("value number 1 of many"), "the one not used for longest").toBe("value number 1 of many");
});
