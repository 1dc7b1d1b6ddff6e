import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";

const noNode = -101;
const unimplemented = -6;
const [closeSession, ping, exists] = [-11, 11, 3];

/** A fake server from before 3.6. It has no nodes, and supports no operation except `exists`, `ping` and the end of a session. */
export class OldServer {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  /** Number of connections accepted so far. */
  accepted = 0;

  private constructor() {
    this.#server = createServer((socket) => this.#accept(socket));
  }

  static async start(): Promise<OldServer> {
    const one = new OldServer();
    one.#server.listen(0, "127.0.0.1");
    await once(one.#server, "listening");
    return one;
  }

  get address(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Resets every connection. New ones are accepted. */
  reset(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.reset();
    this.#server.close();
    await once(this.#server, "close");
  }

  #accept(socket: Socket): void {
    this.accepted++;
    this.#sockets.add(socket);
    socket.on("close", () => this.#sockets.delete(socket));
    socket.on("error", () => undefined); // the test resets the connection; `close` follows
    let rest = Buffer.alloc(0);
    let welcomed = false;
    socket.on("data", (chunk) => {
      rest = Buffer.concat([rest, chunk]);
      while (rest.length >= 4 && rest.length >= 4 + rest.readInt32BE(0)) {
        const frame = rest.subarray(4, 4 + rest.readInt32BE(0));
        rest = rest.subarray(4 + frame.length);
        socket.write(welcomed ? reply(frame) : welcome(frame.readInt32BE(12)));
        welcomed = true;
      }
    });
  }
}

function framed(body: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeInt32BE(body.length);
  return Buffer.concat([length, body]);
}

/** Encodes the answer to the handshake: version, timeout, session id, password, and false because the server does not only read. */
function welcome(timeoutMs: number): Buffer {
  const body = Buffer.alloc(4 + 4 + 8 + 4 + 16 + 1);
  body.writeInt32BE(timeoutMs, 4);
  body.writeBigInt64BE(5n, 8);
  body.writeInt32BE(16, 16);
  return framed(body);
}

/** Encodes a reply without a body: xid, zxid and error. */
function reply(request: Buffer): Buffer {
  const operation = request.readInt32BE(4);
  const known = operation === ping || operation === closeSession;
  const body = Buffer.alloc(16);
  body.writeInt32BE(request.readInt32BE(0), 0);
  body.writeBigInt64BE(1n, 4);
  body.writeInt32BE(known ? 0 : operation === exists ? noNode : unimplemented, 12);
  return framed(body);
}
