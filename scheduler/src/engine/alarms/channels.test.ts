import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { createInterface } from "node:readline";
import { SMTPServer } from "smtp-server";
import { expect, it } from "vitest";
import { systemClock } from "../../base/clock.ts";
import { CarillonError } from "../../base/errors.ts";
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

it.each(["PLAIN", "LOGIN"])(
  "a mail server's answer that repeats what AUTH %s sent is told without it",
  async (method) => {
    const sent: string[] = [];
    // A server that answers with each line of a client, from AUTH on.
    const server = createServer((socket) => {
      socket.write("220 m.example\r\n");
      createInterface(socket).on("line", (line) => {
        if (/^EHLO/.test(line)) return void socket.write(`250-m.example\r\n250 AUTH ${method}\r\n`);
        sent.push(...line.split(" ").slice(-1));
        const asks = method === "LOGIN" && sent.length < 3;
        socket.write(asks ? "334 VXNlcm5hbWU6\r\n" : `535 refused: ${sent.join(" ")}\r\n`);
      });
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    try {
      const error = await refused({
        smtp: `smtp://me:s3%2Fcret@127.0.0.1:${port}`,
        from: "a@b.example",
        to: "c@d.example",
      });
      const secret = Buffer.from(method === "PLAIN" ? "\0me\0s3/cret" : "s3/cret").toString("base64");
      expect(sent).toContain(secret);
      expect(error.message).toContain("refused: ");
      expect(error.message).not.toContain(secret.replace(/=+$/, ""));
    } finally {
      server.close();
    }
  },
);

it("a hint that repeats a secret of the channel is told without it", async () => {
  const settings = alarmSettings({ channels: { ops: { slack: "https://hooks.slack.com/services/T/B/key" } } });
  const failed = new CarillonError("HTTP_FAILED", "no answer", { hint: "Is /services/T/B/key right?" });
  const senders = { ...alarmSenders, post: () => () => Promise.reject(failed) };
  const { ops } = await channelsOf(settings, senders, systemClock);
  const message = { kind: "test", words: "x", atMs: 0 } as never;
  await expect(ops?.("1", message, new AbortController().signal)).rejects.toMatchObject({
    message: "no answer",
    hint: "Is *** right?",
  });
});

it("what a program says of its arguments is told without them", async () => {
  const error = await refused({ command: ["/bin/sh", "-c", 'echo "wrong: $1" >&2; exit 3', "sh", "--token=s3cret-1"] });
  expect(error).toMatchObject({ code: "COMMAND_FAILED" });
  expect(error.message).toContain("wrong: ***");
});
