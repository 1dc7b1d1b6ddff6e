import { createSocket } from "node:dgram";
import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { hostname, networkInterfaces } from "node:os";
import { createServer as createTlsServer } from "node:tls";
import { afterEach, describe, expect, test } from "vitest";
import { createAuthority } from "../../../../zookeeper/src/testing/certificates.ts";
import { systemClock } from "../../base/clock.ts";
import { datagramAddress, syslogSender } from "./syslog.ts";

const messages = ["one", "钟 two", "x".repeat(200_000)].map((text, at) => ({
  atMs: 1_700_000_000_000 + at,
  kind: "audit",
  text,
}));
const never = new AbortController().signal;
const failed = (words: string) =>
  expect.objectContaining({ code: "SYSLOG_FAILED", message: expect.stringContaining(words) });

const servers: Server[] = [];
const open: Socket[] = [];
afterEach(async () => {
  for (const socket of open.splice(0)) socket.destroy();
  for (const server of servers.splice(0)) await new Promise((resolve) => server.close(resolve));
});

async function listen(server: Server): Promise<number> {
  servers.push(server);
  server.on("connection", (socket) => open.push(socket));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

/** Returns a server's handler, and the bytes that it has read when the client ended its half. */
function reader() {
  const read: Buffer[] = [];
  const onSocket = (socket: Socket) => {
    socket.on("data", (bytes: Buffer) => read.push(bytes));
    socket.on("end", () => socket.end());
    socket.on("error", () => socket.destroy());
  };
  return { onSocket, text: () => Buffer.concat(read).toString() };
}

/** Splits octet-counted frames. */
function frames(text: string): string[] {
  const found: string[] = [];
  for (let rest = Buffer.from(text); rest.length > 0; ) {
    const space = rest.indexOf(" ");
    const length = Number(rest.subarray(0, space).toString());
    expect(length).toBeGreaterThan(0);
    found.push(rest.subarray(space + 1, space + 1 + length).toString());
    rest = rest.subarray(space + 1 + length);
  }
  return found;
}
const lineOf = ({ atMs, text }: { atMs: number; text: string }) =>
  `<109>1 ${new Date(atMs).toISOString()} ${hostname()} carillon ${process.pid} audit - ${text}`;

describe("messages are sent to a syslog server", () => {
  test("over TCP with octet counting, until the server has read them all", async () => {
    const { onSocket, text } = reader();
    const port = await listen(createServer({ allowHalfOpen: true }, onSocket));
    await syslogSender(`syslog+tcp://127.0.0.1:${port}`, systemClock)(messages, never);
    expect(frames(text())).toEqual(messages.map(lineOf));
  });

  test("over TLS, to a server whose certificate is trusted alone", async () => {
    const authority = createAuthority();
    const { key, cert } = authority.issue("localhost");
    const { onSocket, text } = reader();
    const port = await listen(createTlsServer({ key, cert, allowHalfOpen: true } as object, onSocket));
    const url = `syslog+tls://127.0.0.1:${port}`;
    await expect(syslogSender(url, systemClock)(messages, never)).rejects.toEqual(failed("certificate"));
    expect(text()).toBe("");
    await syslogSender(url, systemClock, { ca: authority.cert })(messages, never);
    expect(frames(text())).toEqual(messages.map(lineOf));
  });

  const hasIPv6 = Object.values(networkInterfaces()).some((all) => all?.some(({ address }) => address === "::1"));
  // A machine without IPv6 has no address ::1 to listen on; the tests of the chosen address still run there.
  const ipv6: [string, string, string[]][] = hasIPv6 ? [["to an IPv6 address", "[::1]", ["::1"]]] : [];
  test.each<[string, string, string[]]>([
    ["to an IPv4 address", "127.0.0.1", ["127.0.0.1"]],
    ["to the IPv4 address of a name that has both", "logs.example", ["::1", "127.0.0.1"]],
    ...ipv6,
  ])("over UDP, one datagram each, %s", async (_, host, addresses) => {
    const isIPv4 = addresses.includes("127.0.0.1");
    const server = createSocket(isIPv4 ? "udp4" : "udp6");
    const read: string[] = [];
    server.on("message", (bytes) => read.push(bytes.toString()));
    server.bind(0, isIPv4 ? "127.0.0.1" : "::1");
    await once(server, "listening");
    const url = `syslog+udp://${host}:${server.address().port}`;
    const send = syslogSender(url, systemClock, { resolve: async () => addresses });
    await send(messages.slice(0, 2), never);
    await expect.poll(() => read, { timeout: 60_000 }).toEqual(messages.slice(0, 2).map(lineOf));
    await expect(send(messages, never)).rejects.toEqual(failed("EMSGSIZE"));
    server.close();
  });
});

test.each([
  ["IPv4, if a name has both", ["::1", "127.0.0.1"], "127.0.0.1"],
  ["IPv6, if a name has nothing else", ["::1"], "::1"],
])("datagrams are sent to %s", async (_, addresses, address) => {
  expect(await datagramAddress("logs.example", async () => addresses)).toBe(address);
});

describe("messages were not taken", () => {
  test("if nothing listens, or the server closes before it has read them", async () => {
    const port = await listen(createServer((socket) => socket.destroy()));
    await expect(syslogSender(`syslog+tcp://127.0.0.1:${port}`, systemClock)(messages, never)).rejects.toEqual(
      failed(""),
    );
    const [server] = servers.splice(0) as [Server];
    await new Promise((resolve) => server.close(resolve));
    await expect(syslogSender(`syslog+tcp://127.0.0.1:${port}`, systemClock)(messages, never)).rejects.toEqual(
      failed("ECONNREFUSED"),
    );
  });

  test("if the server has not closed when the time is over", async () => {
    const sockets: Socket[] = [];
    const port = await listen(createServer({ allowHalfOpen: true }, (socket) => sockets.push(socket.resume())));
    const over = new AbortController();
    const sent = syslogSender(`syslog+tcp://127.0.0.1:${port}`, systemClock)(messages, over.signal);
    await expect.poll(() => sockets.length, { timeout: 60_000 }).toBe(1);
    over.abort(new Error("over"));
    await expect(sent).rejects.toThrow("over");
    await expect(syslogSender(`syslog+tcp://127.0.0.1:${port}`, systemClock)(messages, over.signal)).rejects.toThrow(
      "over",
    );
    for (const socket of sockets) socket.destroy();
  });
});
