import type { AddressInfo } from "node:net";
import { SMTPServer } from "smtp-server";
import { expect, it } from "vitest";
import { systemClock } from "../../base/clock.ts";
import { alarmSenders } from "../../library/alarms/senders.ts";
import { alarmSettings } from "../../settings/alarms/alarms.ts";
import type { ChannelOptions } from "../../settings/alarms/channels.ts";
import { channelsOf } from "./channels.ts";

/** Sends a test message, and returns the error. */
async function refused(channel: ChannelOptions): Promise<Error & { code?: string; hint?: string }> {
  const settings = alarmSettings({ channels: { ops: channel } });
  const { ops } = await channelsOf(settings, alarmSenders, systemClock);
  const sent = ops?.("1", { kind: "test", words: "x", atMs: 0 } as never, new AbortController().signal);
  return sent?.then(() => Promise.reject(new Error("it was taken"))).catch((error: unknown) => error) as never;
}

it("a mail server's answer that repeats the password is told without it", async () => {
  const server = new SMTPServer({
    disabledCommands: ["STARTTLS"],
    allowInsecureAuth: true,
    onAuth: ({ password }, _session, done) => done(new Error(`no user has the password ${password}`)),
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.server.address() as AddressInfo;
  const smtp = `smtp://me:s3%2Fcret@127.0.0.1:${port}`;
  try {
    const error = await refused({ smtp, from: "a@b.example", to: "c@d.example" });
    expect(error).toMatchObject({ code: "MAIL_FAILED", hint: expect.stringMatching(/\w/) });
    expect(error.message).toContain("no user has the password ***");
  } finally {
    await new Promise<void>((resolve) => server.close(() => resolve()));
  }
});

it("what a program says of its arguments is told without them", async () => {
  const error = await refused({ command: ["/bin/sh", "-c", 'echo "wrong: $1" >&2; exit 3', "sh", "--token=s3cret-1"] });
  expect(error).toMatchObject({ code: "COMMAND_FAILED" });
  expect(error.message).toContain("wrong: ***");
});
