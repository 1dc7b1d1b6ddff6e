import { describe, expect, it } from "vitest";
import { type HttpOptions, httpSpec } from "./http.ts";
import { defineTask } from "./task.ts";

const url = "https://api.example.com/hook";

describe("an HTTP task's definition", () => {
  it("is complete, plain JSON", () => {
    const { http } = defineTask("t", { http: { url: `${url}#there`, headers: { "X-A": "1" } } });
    expect(http).toEqual({
      url,
      method: "POST",
      headers: { "x-a": "1" },
      timeoutMs: 30_000,
      okStatuses: ["2xx"],
      retryStatuses: [408, 429, "5xx"],
      redirects: 0,
    });
    expect(JSON.parse(JSON.stringify(http))).toEqual(http);
    const options: HttpOptions = {
      url,
      method: "PUT",
      body: { a: null },
      timeout: "5s",
      okStatuses: [200, "3xx"],
      redirects: 2,
    };
    expect(httpSpec("t", options)).toMatchObject({
      method: "PUT",
      body: { a: null },
      timeoutMs: 5_000,
      okStatuses: [200, "3xx"],
      redirects: 2,
    });
  });

  it("is absent if there is none, so that older definitions keep their text", () => {
    expect("http" in defineTask("t")).toBe(false);
  });

  it.each<[string, unknown, string]>([
    ["no URL", {}, "url is missing"],
    ["half a URL", { url: "/hook" }, "url is no URL"],
    ["another scheme", { url: "file:///etc/passwd" }, "file:"],
    ["another scheme", { url: "gopher://x/" }, "gopher:"],
    ["a password", { url: "https://a:b@example.com" }, "user or password"],
    ["too much of a URL", { url: `https://x/${"a".repeat(8_000)}` }, "url is no URL"],
    ["an unknown option", { url, retries: 3 }, '"retries"'],
    ["an unknown method", { url, method: "CONNECT" }, "CONNECT"],
    ["a body that is not sent", { url, method: "GET", body: 1 }, "GET sends none"],
    ["a header's end in a value", { url, headers: { a: "b\r\nHost: evil" } }, "value of a"],
    ["a header's end in a name", { url, headers: { "a\r\nb": "c" } }, "headers cannot hold"],
    ["whom it is for", { url, headers: { HOST: "evil" } }, "headers cannot hold"],
    ["its framing", { url, headers: { "Transfer-Encoding": "chunked" } }, "headers cannot hold"],
    ["what the worker says", { url, headers: { "Carillon-Fence": "9" } }, "headers cannot hold"],
    ["a number for a header", { url, headers: { a: 1 } }, "value of a"],
    ["a list of headers", { url, headers: ["a"] }, "headers must be"],
    ["no status", { url, okStatuses: [] }, "okStatuses must be"],
    ["a strange status", { url, retryStatuses: ["6xx"] }, "retryStatuses must be"],
    ["endless redirects", { url, redirects: 100 }, "redirects cannot be"],
    ["a text", "https://x", "must be an object"],
  ])("with %s is refused", (_, http, words) => {
    expect(() => defineTask("t", { http: http as HttpOptions })).toThrow(
      expect.objectContaining({ code: "TASK_INVALID", message: expect.stringContaining(words) }),
    );
  });
});
