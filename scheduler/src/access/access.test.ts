import { describe, expect, test } from "vitest";
import { checkNamespace, namespaceOf } from "../base/namespace.ts";
import { checkPolicy, highestRole, narrowed, type Principal, Reach, roles } from "./access.ts";

const someone = (given: Partial<Principal> = {}): Principal => ({
  kind: "user",
  userId: 1,
  user: "ann",
  token: null,
  role: null,
  grants: [],
  namespaces: null,
  scopes: null,
  temporary: false,
  provided: false,
  ...given,
});

describe("a namespace", () => {
  test("is the part of a name before its first slash", () => {
    const names = { settle: "default", "billing/settle": "billing", "a/b/c": "a", "default/x": "default", "a/": "a" };
    for (const [name, namespace] of Object.entries(names)) expect([name, namespaceOf(name)]).toEqual([name, namespace]);
  });

  test("must have a valid name", () => {
    for (const good of ["billing", "a.b:c@d-e_f", "1"]) expect(checkNamespace(good)).toBe(good);
    for (const bad of ["", "a/b", "*", "-a", "ä", "x".repeat(101), "a b", "a\n"])
      expect(() => checkNamespace(bad)).toThrow(expect.objectContaining({ code: "OPTION_INVALID" }));
  });
});

describe("a role", () => {
  const grants = [
    { namespace: "a", role: "editor" as const },
    { namespace: "b", role: "viewer" as const },
  ];

  test("is the higher of the user's role everywhere and the role granted in that namespace", () => {
    const who = someone({ role: "operator", grants });
    expect(roles.map((least) => new Reach(who, least).namespaces)).toEqual([null, null, ["a"], []]);
    expect(highestRole(who)).toBe("editor");
    expect(highestRole(someone())).toBeNull();
    expect(new Reach(who, "editor").has("a/task")).toBe(true);
    expect(new Reach(who, "editor").has("ab/task")).toBe(false);
    expect(() => new Reach(who, "editor").check("task")).toThrow(expect.objectContaining({ code: "ACCESS_DENIED" }));
  });

  test("of a token is the lower of the user's role and the token's role, only in the token's namespaces", () => {
    const user = { role: "operator" as const, grants };
    expect(narrowed(user, { role: "viewer", namespaces: null })).toEqual({
      role: "viewer",
      grants: grants.map((grant) => ({ ...grant, role: "viewer" })),
    });
    expect(narrowed(user, { role: "admin", namespaces: ["a", "c"] })).toEqual({
      role: null,
      grants: [
        { namespace: "a", role: "editor" },
        { namespace: "c", role: "operator" },
      ],
    });
    expect(narrowed({ role: null, grants }, { role: "admin", namespaces: ["c"] })).toEqual({ role: null, grants: [] });
  });

  test("in one namespace gives no access to cluster-wide routes", () => {
    const asked = { noun: "cluster", writes: false } as const;
    const who = someone({ grants });
    for (const policy of roles) {
      const everywhere = () => checkPolicy(who, { ...asked, policy, touches: "cluster" });
      expect(everywhere).toThrow(expect.objectContaining({ code: "ACCESS_DENIED" }));
    }
    expect(checkPolicy(who, { ...asked, policy: "viewer", touches: "listed" }).namespaces).toEqual(["a", "b"]);
    expect(() => checkPolicy(who, { ...asked, policy: "admin", touches: "listed" })).toThrow(/has it not/);
  });
});
