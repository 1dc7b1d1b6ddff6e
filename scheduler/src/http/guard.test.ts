import { expect, test } from "vitest";
import { streamHeaders, strictHeaders } from "./guard.ts";

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
