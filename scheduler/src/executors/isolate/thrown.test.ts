import { describe, expect, it } from "vitest";
import { CarillonError } from "../../base/errors.ts";
import { received, sent } from "./thrown.ts";

/** Converts a thrown value to its sendable form, copies it, and converts it back. */
const across = (thrown: unknown, reason?: unknown) => received(structuredClone(sent(thrown, reason)), reason);

describe("an error thrown across the thread boundary", () => {
  it("keeps its class, name, message, stack, cause and other properties", () => {
    class OwnError extends RangeError {
      override readonly name = "OwnError";
      readonly code = "E_OWN";
      readonly detail = { of: [1] };
      readonly undo = () => undefined;
    }
    const thrown = new OwnError("mine", { cause: new TypeError("deeper", { cause: "deepest" }) });
    const got = across(thrown) as OwnError;
    expect(got).toMatchObject({ name: "OwnError", message: "mine", code: "E_OWN", detail: { of: [1] } });
    expect(got.stack).toBe(thrown.stack);
    expect(got.undo).toBeUndefined();
    expect(got.cause).toBeInstanceOf(TypeError);
    expect(got.cause).toMatchObject({ message: "deeper", cause: "deepest" });
    expect(across(new TypeError("plain"))).toBeInstanceOf(TypeError);
  });

  it("stays a CarillonError, also one from another copy of this package", () => {
    const thrown = new CarillonError("HTTP_FAILED", "later", {
      hint: "wait",
      path: "a.b",
      retryAfterMs: Number.POSITIVE_INFINITY,
      cause: new Error("down"),
    });
    const foreign = Object.assign(new Error("later"), { ...thrown, name: "CarillonError" });
    for (const one of [thrown, foreign]) {
      const got = across(one) as CarillonError;
      expect(got).toBeInstanceOf(CarillonError);
      const { code, hint, path, retryAfterMs } = got;
      expect({ code, hint, path, retryAfterMs }).toEqual({
        code: "HTTP_FAILED",
        hint: "wait",
        path: "a.b",
        retryAfterMs: Number.POSITIVE_INFINITY,
      });
    }
    expect((across(thrown) as Error).cause).toMatchObject({ message: "down" });
    // An error with the name "CarillonError" but an unknown code does not become a CarillonError.
    const pretender = Object.assign(new Error("no"), { name: "CarillonError", code: "NOT_A_CODE" });
    expect(across(pretender)).not.toBeInstanceOf(CarillonError);
    expect(across(pretender)).toMatchObject({ code: "NOT_A_CODE" });
  });

  it("is the abort reason itself if that stopped the run", () => {
    const reason = new CarillonError("CANCELLED", "by hand");
    expect(across(reason, reason)).toBe(reason);
    expect((across(new Error("stopped", { cause: reason }), reason) as Error).cause).toBe(reason);
  });

  it("may be any value", () => {
    for (const value of ["text", 5, undefined, null, { code: "X" }, new Map([[1, 2]])])
      expect(across(value)).toEqual(value);
    expect(across({ f: () => undefined })).toBe("{}");
    expect(across(Symbol("no"))).toBe("Symbol(no)");
    const unreadable = new Proxy(new Error("no"), {
      get() {
        throw new Error("not to be looked at");
      },
    });
    expect(across(unreadable)).toMatch(/unreadable|not to be looked at/);
    const circle: { self?: unknown } = new Error("round") as never;
    circle.self = circle;
    expect(across(circle)).toMatchObject({ message: "round" });
    const causes = new Error("own cause");
    causes.cause = causes;
    expect(across(causes)).toMatchObject({ message: "own cause" });
  });
});
