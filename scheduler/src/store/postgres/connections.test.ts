import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { TLSSocket } from "node:tls";
import pg from "pg";
import { afterEach, expect, it } from "vitest";
import { createAuthority } from "../../../../zookeeper/src/testing/certificates.ts";
import { Connections } from "./connections.ts";

const message = (kind: string, body: Buffer) => {
  const head = Buffer.alloc(5);
  head.write(kind);
  head.writeInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
};
const letIn = Buffer.concat([message("R", Buffer.alloc(4)), message("Z", Buffer.from("I"))]);
const cancelled = Buffer.concat([
  message("E", Buffer.from("SERROR\0C57014\0Mcanceling statement due to user request\0\0")),
  message("Z", Buffer.from("I")),
]);

let server: Server | undefined;
const sockets: Socket[] = [];
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
  server?.close();
});

/** Starts a server that accepts every client and answers no statement. @returns its port, and the socket that received a statement */
async function silentServer(tls: boolean): Promise<{ port: number; statement: Promise<Socket> }> {
  const { cert, key } = createAuthority().issue("localhost");
  let asked: (socket: Socket) => void;
  const statement = new Promise<Socket>((resolve) => {
    asked = resolve;
  });
  const speak = (socket: Socket) =>
    socket.once("data", () => {
      socket.write(letIn);
      socket.once("data", () => asked(socket));
    });
  server = createServer((socket) => {
    sockets.push(socket);
    socket.on("error", () => undefined); // the client may have closed the connection first
    if (!tls) return speak(socket);
    socket.once("data", () => {
      socket.write("S");
      const secure = new TLSSocket(socket, { isServer: true, cert, key });
      secure.on("error", () => undefined); // the client may have closed the connection first
      speak(secure);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { port: (server.address() as { port: number }).port, statement };
}

it.each(["plain", "TLS"])(
  "statements on an abandoned connection fail with a connection error, not with their cancellation: %s",
  async (how) => {
    const { port, statement } = await silentServer(how === "TLS");
    const ssl = how === "TLS" && { rejectUnauthorized: false };
    const client = new pg.Client({ host: "127.0.0.1", port, user: "u", password: "p", database: "d", ssl });
    client.on("error", () => undefined); // the statements of this client reject with the same error
    await client.connect();
    const all = Promise.allSettled(["at work", "waits", "waits too"].map((text) => client.query(`select '${text}'`)));
    const socket = await statement;
    const connections = new Connections(async () => {
      // The server's answer to the cancellation arrives before the connection is cut.
      await new Promise<void>((resolve) => socket.write(cancelled, () => resolve()));
      await new Promise((resolve) => setTimeout(resolve, 50));
    });
    connections.watch(client);
    connections.giveUp(client);
    const terminated = { status: "rejected", reason: { message: "Connection terminated unexpectedly" } };
    expect(await all).toMatchObject([terminated, terminated, terminated]);
  },
);
