import { type AddressInfo, createServer } from "node:net";
import { SMTPServer } from "smtp-server";
import { expect, it } from "vitest";
import { mailer } from "./mail.ts";

it("a mail that no server accepts fails with a hint, and without the password", async () => {
  const send = mailer({ smtp: "smtp://me:s3cret@127.0.0.1:1", from: "a@example.com", to: "b@example.com" });
  const sent = send("id", { subject: "s", text: "t" }, new AbortController().signal);
  await expect(sent).rejects.toMatchObject({ code: "MAIL_FAILED", hint: expect.stringMatching(/\w/) });
  await expect(sent).rejects.toThrow(expect.not.objectContaining({ message: expect.stringContaining("s3cret") }));
});

it("a hanging mail ends with its abort signal", async () => {
  const silent = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => silent.once("listening", resolve));
  const smtp = `smtp://127.0.0.1:${(silent.address() as AddressInfo).port}`;
  const given = new AbortController();
  const send = mailer({ smtp, from: "a@example.com", to: "b@example.com" });
  const sent = send("id", { subject: "s", text: "t" }, given.signal);
  silent.once("connection", () => given.abort(new Error("it took too long")));
  await expect(sent).rejects.toThrow("it took too long");
  silent.close();
});

it("a password is sent to another machine only after STARTTLS, unless configured; to this machine always", async () => {
  const signedIn: string[] = [];
  const server = new SMTPServer({
    disabledCommands: ["STARTTLS"],
    allowInsecureAuth: true,
    onAuth: ({ password }, _session, done) => {
      signedIn.push(password ?? "");
      done(null, { user: "me" });
    },
    onData: (stream, _session, done) => void stream.resume().on("end", done),
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.server.address() as AddressInfo;
  const send = (host: string, more: { requireTls?: boolean } = {}) =>
    mailer({ smtp: `smtp://me:${host}@${host}:${port}`, from: "a@example.com", to: "b@example.com", ...more })(
      "id",
      { subject: "s", text: "t" },
      new AbortController().signal,
    );
  try {
    // The name resolves to this machine, but does not look like a local name, so TLS is required by default.
    const hint = expect.stringContaining("requireTls");
    await expect(send("0.0.0.0")).rejects.toMatchObject({ code: "MAIL_FAILED", hint });
    await expect(send("127.0.0.1", { requireTls: true })).rejects.toMatchObject({ code: "MAIL_FAILED", hint });
    expect(signedIn).toEqual([]);
    await send("0.0.0.0", { requireTls: false });
    await send("127.0.0.1");
    expect(signedIn).toEqual(["0.0.0.0", "127.0.0.1"]);
  } finally {
    await new Promise<void>((resolve) => server.close(() => resolve()));
  }
});
