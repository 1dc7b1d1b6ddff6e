import { type AddressInfo, createServer } from "node:net";
import { expect, it } from "vitest";
import { mailer } from "./mail.ts";

it("a mail that no server takes fails with what to look at, and without the password", async () => {
  const send = mailer({ smtp: "smtp://me:s3cret@127.0.0.1:1", from: "a@example.com", to: "b@example.com" });
  const sent = send("id", { subject: "s", text: "t" }, new AbortController().signal);
  await expect(sent).rejects.toMatchObject({ code: "MAIL_FAILED", hint: expect.stringMatching(/\w/) });
  await expect(sent).rejects.toThrow(expect.not.objectContaining({ message: expect.stringContaining("s3cret") }));
});

it("a mail that hangs ends with its signal", async () => {
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
