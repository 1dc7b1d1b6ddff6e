import { expect, it } from "vitest";
import { mailer } from "./mail.ts";

it("a mail that no server takes fails with what to look at, and without the password", async () => {
  const send = mailer({ smtp: "smtp://me:s3cret@127.0.0.1:1", from: "a@example.com", to: "b@example.com" });
  const sent = send("id", { subject: "s", text: "t" }, new AbortController().signal);
  await expect(sent).rejects.toMatchObject({ code: "MAIL_FAILED", hint: expect.stringMatching(/\w/) });
  await expect(sent).rejects.toThrow(expect.not.objectContaining({ message: expect.stringContaining("s3cret") }));
});
