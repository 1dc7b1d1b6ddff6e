import { createTransport } from "nodemailer";
import { CarillonError, messageOf } from "../../base/errors.ts";
import type { MailChannel } from "../../settings/alarms/channels.ts";
import { isThisMachine } from "../../settings/this-machine.ts";

const patienceMs = 20_000;

/** Returns a function that sends one mail. Each mail uses a new connection, because alarms are rare. */
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
      // The mail library must not read parts of a message from a file or a URL.
      disableFileAccess: true,
      disableUrlAccess: true,
    });
    try {
      // The Message-ID stays the same when a message is sent again, so that a receiver can recognise a duplicate.
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
