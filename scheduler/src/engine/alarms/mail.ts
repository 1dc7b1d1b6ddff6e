import { createTransport } from "nodemailer";
import { CarillonError, messageOf } from "../../base/errors.ts";
import type { MailChannel } from "../../settings/alarms/channels.ts";
import { isThisMachine } from "../../settings/this-machine.ts";

const patienceMs = 20_000;

/** Sends one mail on a connection of its own, because alarms are few. */
export function mailer({ smtp, from, to, requireTls }: MailChannel) {
  const { password, hostname } = new URL(smtp);
  /** @throws MAIL_FAILED; the signal's reason */
  return async (
    id: string,
    { subject, text }: { subject: string; text: string },
    signal: AbortSignal,
  ): Promise<void> => {
    const transport = createTransport({
      url: smtp,
      requireTLS: requireTls ?? (password !== "" && !isThisMachine(hostname)),
      connectionTimeout: patienceMs,
      greetingTimeout: patienceMs,
      socketTimeout: patienceMs,
      // No part of a message is ever read from a file or a URL.
      disableFileAccess: true,
      disableUrlAccess: true,
    });
    try {
      // Each resend has the same id, so that a receiver can recognise a message that it already has.
      const domain = from.slice(from.lastIndexOf("@") + 1).replace(/[^A-Za-z0-9.-]/g, "");
      await transport.sendMail({
        from,
        to,
        subject: `[carillon] ${subject}`,
        text,
        messageId: `<${id}@${domain}>`,
        headers: { "Auto-Submitted": "auto-generated" },
        signal,
      });
    } catch (cause) {
      signal.throwIfAborted();
      throw new CarillonError("MAIL_FAILED", `the mail was not taken by ${new URL(smtp).host}: ${messageOf(cause)}`, {
        hint: "Check the server, its user and password, whether it takes mail from this address, and whether it has STARTTLS (else requireTls: false sends the password in clear).",
        cause,
      });
    } finally {
      transport.close();
    }
  };
}
