import { describe, expect, test } from "vitest";
import { type ProviderOptions, type ProviderRule, providerSettings, rightsOf, verifiedOnly } from "./provider.ts";

const given: ProviderOptions = {
  issuer: "https://login.example.com/realms/a",
  clientId: "carillon",
  clientSecret: "s",
  url: "https://carillon.example.com/",
  rules: [{ claim: "groups", has: "ops", role: "operator" }],
};

describe("a sign-in provider", () => {
  test("suggests the nearest name for a misspelt option", () => {
    const misspelt = { ...given, isuer: given.issuer } as unknown as ProviderOptions;
    expect(() => providerSettings(misspelt)).toThrow('provider has no "isuer"; did you mean "issuer"?');
  });

  test("is read with its defaults, and wrong options and unencrypted URLs are refused", () => {
    expect(providerSettings(given)).toMatchObject({
      url: "https://carillon.example.com",
      label: "login.example.com",
      name: "preferred_username",
      scopes: ["openid", "profile", "email"],
      rules: [{ claim: "groups", has: "ops", role: "operator", in: null }],
    });
    expect(providerSettings({ ...given, url: "http://127.0.0.1:7373" }).url).toBe("http://127.0.0.1:7373");
    for (const wrong of [
      { issuer: "http://login.example.com" },
      { issuer: "login" },
      { issuer: "https://me:secret@login.example.com" },
      { url: "http://carillon.example.com" },
      { url: "https://carillon.example.com/console" },
      { clientSecret: "" },
      { clientId: undefined },
      { scopes: ["a b"] },
      { rules: [] },
      { rules: [{ claim: "groups", role: "king" }] },
      { rules: [{ claim: "", role: "viewer" }] },
      { rules: [{ claim: "groups", role: "viewer", in: "a/b" }] },
      { rules: [{ claim: "groups", role: "viewer", where: "a" }] },
      { nonsense: true },
      { label: 7 },
    ])
      expect(() => providerSettings({ ...given, ...wrong } as unknown as ProviderOptions)).toThrow(
        expect.objectContaining({ code: "OPTION_INVALID" }),
      );
  });

  test("gives the highest of all roles that its rules derive from the claims, everywhere and per namespace", () => {
    const rules: ProviderRule[] = [
      { claim: "groups", has: "all", role: "viewer" },
      { claim: "groups", has: "ops", role: "operator" },
      { claim: "groups", has: "a", role: "editor", in: ["a", "b"] },
      { claim: "groups", has: "b", role: "admin", in: "b" },
      { claim: "department", has: "it", role: "viewer", in: "it" },
      { claim: "staff", role: "viewer", in: "staff" },
    ];
    const of = (claims: Parameters<typeof rightsOf>[1]) => rightsOf(providerSettings({ ...given, rules }), claims);
    expect(of({ groups: ["ops", "all"] })).toEqual({ role: "operator", grants: [] });
    expect(of({ groups: ["b", "a"] })).toEqual({
      role: null,
      grants: [
        { namespace: "a", role: "editor" },
        { namespace: "b", role: "admin" },
      ],
    });
    expect(of({ department: "it", staff: true })?.grants.map(({ namespace }) => namespace)).toEqual(["it", "staff"]);
    for (const none of [
      {},
      { groups: [] },
      { groups: "opsy" },
      { groups: null },
      { staff: false },
      { staff: "" },
      { staff: [] },
    ])
      expect(of(none)).toBeNull();
  });

  test("is not trusted for an email address that it has not verified", () => {
    const rules: ProviderRule[] = [{ claim: "email", has: "boss@example.com", role: "admin" }];
    const of = (more: object) =>
      rightsOf(providerSettings({ ...given, rules }), verifiedOnly({ email: "boss@example.com", ...more }));
    expect(of({ email_verified: true })).toEqual({ role: "admin", grants: [] });
    for (const more of [{}, { email_verified: false }, { email_verified: "true" }, { email_verified: 1 }])
      expect(of(more)).toBeNull();
  });
});
