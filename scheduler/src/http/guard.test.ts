import { expect, test } from "vitest";
import { readCookie, streamHeaders, strictHeaders } from "./guard.ts";

test("a host is restricted to TLS only if a proxy ends TLS and the host is not shared", () => {
  const sent = (behindProxy: boolean, basePath: string) => {
    let headers: Record<string, unknown> = {};
    const reply = { headers: (given: Record<string, unknown>) => (headers = given) };
    const place = { behindProxy, basePath };
    strictHeaders(reply as never, place);
    return [headers, streamHeaders(place)].map((one) => one["strict-transport-security"]);
  };
  const strict = "max-age=31536000; includeSubDomains";
  expect(sent(true, "")).toEqual([strict, strict]);
  expect(sent(true, "/carillon")).toEqual([undefined, undefined]);
  expect(sent(false, "")).toEqual([undefined, undefined]);
});

test("a sign-in cookie that arrives twice counts as none, because a subdomain may have planted one of them", () => {
  const read = (cookie: string) => readCookie({ headers: { cookie } }, "__Secure-carillon");
  const [own, planted] = ["o".repeat(43), "p".repeat(43)];
  expect(read(`a=b; __Secure-carillon=${own}; __Secure-carillon-known=${planted}`)).toBe(own);
  expect(read(`__Secure-carillon=${planted}; __Secure-carillon=${own}`)).toBeNull();
  expect(read(`__Secure-carillon=${own}; __Secure-carillon=odd`)).toBeNull();
  expect(read("__Secure-carillon=odd")).toBeNull();
  expect(read("a=b")).toBeNull();
});
