import { expect, it } from "vitest";
import { systemClock } from "../../base/clock.ts";
import { checkEventAddresses } from "./event-poster.ts";
import { checkWebhooks, noticePoster } from "./notice.ts";

const post = (webhook: string, addresses: string[], allow?: string[]) =>
  noticePoster({ webhook, ...(allow ? { allow } : {}) }, systemClock, async () => addresses)(
    "id",
    {},
    new AbortController().signal,
  );

it.each([["10.0.0.8"], ["127.0.0.1"], ["169.254.169.254"], ["::1"]])(
  "a name that resolves to %s is not called",
  async (address) => {
    await expect(post("http://hooks.example.com:1/x", [address])).rejects.toMatchObject({
      code: "HTTP_NOT_ALLOWED",
      hint: expect.stringMatching(/alarms\.channels(?!.*httpTasks)/),
    });
  },
);

it("an error names only the host, because the path may be the secret", async () => {
  const hook = (addresses: string[], allow?: string[]) => post("http://hooks.example.com:1/s3cret/x", addresses, allow);
  for (const posted of [hook(["10.0.0.8"]), hook(["127.0.0.1"], ["127.0.0.0/8"])]) {
    const { message } = (await posted.catch((error: unknown) => error)) as Error;
    expect(message).toContain("hooks.example.com:1");
    expect(message).not.toContain("s3cret");
  }
});

it("an internal address is called if the operator lists it", async () => {
  await expect(post("http://hooks.example.com:1/x", ["127.0.0.1"], ["127.0.0.0/8"])).rejects.toMatchObject({
    code: "HTTP_FAILED",
  });
});

it("an invalid allow list is refused at configuration, with the option's name", () => {
  const webhook = "https://hooks.example.com/x";
  checkWebhooks({ ops: { webhook, allow: ["10.1.0.0/16"] } });
  expect(() => checkWebhooks({ ops: { webhook, allow: ["10.1.0.0/99"] } })).toThrow(
    'alarms.channels.ops.allow: "10.1.0.0/99"',
  );
});

it("a host that could never be called is refused at configuration, with the option's path", () => {
  const url = "https://monitor.example.com./ping";
  const refused = (path: string) => expect.objectContaining({ code: "OPTION_INVALID", path });
  expect(() => checkWebhooks({}, { url, everyMs: 60_000, allow: [] })).toThrow(refused("alarms.ping.url"));
  expect(() => checkEventAddresses({ siem: { url } })).toThrow(refused("webhooks.siem.url"));
  checkEventAddresses({ siem: { url: "syslog+tls://logs.example.com.", audit: true } });
});
