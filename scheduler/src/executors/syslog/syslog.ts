/** Sends messages to a syslog server: RFC 5424 over TLS or TCP with octet counting (RFC 5425, RFC 6587), or over UDP (RFC 5426). */
import { createSocket } from "node:dgram";
import { connect, isIPv4, isIPv6, type Socket } from "node:net";
import { hostname } from "node:os";
import { type ConnectionOptions, connect as connectTls } from "node:tls";
import type { Clock } from "../../base/clock.ts";
import { CarillonError, messageOf } from "../../base/errors.ts";
import { type Resolve, systemResolve } from "../http/target.ts";

export interface SyslogMessage {
  atMs: number;
  /** The kind of message (MSGID), up to 32 visible ASCII characters. */
  kind: string;
  text: string;
}

export type SendSyslog = (messages: readonly SyslogMessage[], signal: AbortSignal) => Promise<void>;

/**
 * The pause in ms between the last byte and the end of this side. A receiver that refuses the connection closes it during the pause. A
 * close after the pause means that the receiver has read everything.
 */
const settleMs = 200;
/** Facility 13 (log audit), severity 5 (notice). */
const priority = 13 * 8 + 5;
const usualPort: Readonly<Record<string, number>> = { "syslog+tls:": 6514, "syslog+tcp:": 601, "syslog+udp:": 514 };
/**
 * Returns a function that sends messages, in their order.
 *
 * Syslog has no acknowledgement. Over TLS and TCP each call has a connection of its own: after the last message this side ends its half,
 * and the call resolves once the receiver has closed the other half, which it does after it has read everything. Over UDP the call resolves
 * once the operating system has taken the messages.
 * @param url syslog+tls://HOST:PORT, syslog+tcp://HOST:PORT or syslog+udp://HOST:PORT
 */
export function syslogSender(
  url: string,
  clock: Clock,
  { resolve = systemResolve, ...tls }: Pick<ConnectionOptions, "ca"> & { resolve?: Resolve } = {},
): SendSyslog {
  const { protocol, hostname: name, port } = new URL(url);
  const to = { host: name.replace(/^\[|\]$/g, ""), port: Number(port) || (usualPort[protocol] as number) };
  const failed = (cause: unknown) =>
    new CarillonError("SYSLOG_FAILED", `${name}:${to.port} did not take the messages: ${messageOf(cause)}`, {
      hint: "Look at the syslog server: its address, its certificate, and whether it counts octets.",
      cause,
    });
  return async (messages, signal) => {
    const lines = messages.map((message) => Buffer.from(lineOf(message)));
    try {
      if (protocol === "syslog+udp:")
        await sendDatagrams(lines, { ...to, host: await datagramAddress(to.host, resolve) });
      else {
        const counted = lines.flatMap((line) => [Buffer.from(`${line.length} `), line]);
        const socket =
          protocol === "syslog+tls:" ? connectTls({ ...to, ...tls, servername: nameOf(to.host) }) : connect(to);
        await sendWhole(socket, Buffer.concat(counted), clock, signal);
      }
    } catch (cause) {
      throw signal.aborted ? signal.reason : failed(cause);
    }
  };
}

/** Returns the name for SNI, which cannot be an address. */
const nameOf = (host: string): string => (/^[\d.]+$|:/.test(host) ? "" : host);

function lineOf({ atMs, kind, text }: SyslogMessage): string {
  const host =
    hostname()
      .replace(/[^\x21-\x7e]/g, "")
      .slice(0, 255) || "-";
  return `<${priority}>1 ${new Date(atMs).toISOString()} ${host} carillon ${process.pid} ${kind} - ${text}`;
}

function sendWhole(socket: Socket, bytes: Buffer, clock: Clock, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = () => socket.destroy(new Error("it took too long"));
    signal.addEventListener("abort", onAbort, { once: true });
    let [isSent, isRead] = [false, false];
    let cancel: (() => void) | undefined;
    socket.once("error", reject);
    socket.once("end", () => {
      isRead = isSent;
    });
    socket.once("close", () => {
      signal.removeEventListener("abort", onAbort);
      cancel?.();
      if (isRead) resolve();
      else reject(new Error("the connection was closed too early"));
    });
    socket.resume();
    if (signal.aborted) return onAbort();
    socket.write(bytes, () => {
      cancel = clock.after(settleMs, () => {
        isSent = true;
        socket.end();
      });
    });
  });
}

/**
 * Returns the address to which datagrams are sent: an IPv4 address if there is one, because no error shows that datagrams to an IPv6
 * address do not arrive. Unlike a connection, a datagram's socket must be of the address's family.
 */
export async function datagramAddress(host: string, resolve: Resolve): Promise<string> {
  const addresses = await resolve(host);
  const address = addresses.find(isIPv4) ?? addresses[0];
  if (address === undefined) throw new Error("the name has no address");
  return address;
}

async function sendDatagrams(lines: readonly Buffer[], { host, port }: { host: string; port: number }): Promise<void> {
  const socket = createSocket(isIPv6(host) ? "udp6" : "udp4");
  try {
    for (const line of lines)
      await new Promise<void>((resolve, reject) =>
        socket.send(line, port, host, (error) => (error ? reject(error) : resolve())),
      );
  } finally {
    socket.close();
  }
}
