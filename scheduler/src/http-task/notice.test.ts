import { expect, it } from "vitest";
import { systemClock } from "../clock.ts";
import { noticePoster } from "./notice.ts";

const post = (webhook: string, addresses: string[], allow?: string[]) =>
  noticePoster({ webhook, ...(allow ? { allow } : {}) }, systemClock, async () => addresses)(
    "id",
    {},
    new AbortController().signal,
  );

it.each([["10.0.0.8"], ["127.0.0.1"], ["169.254.169.254"], ["::1"]])(
  "a name that leads to %s is not called",
  async (address) => {
    await expect(post("http://hooks.example.com:1/x", [address])).rejects.toMatchObject({ code: "HTTP_NOT_ALLOWED" });
  },
);

it("unless the operator lists the address", async () => {
  await expect(post("http://hooks.example.com:1/x", ["127.0.0.1"], ["127.0.0.0/8"])).rejects.toMatchObject({
    code: "HTTP_FAILED",
  });
});
