import { connect, createServer, type Server, type Socket } from "node:net";

/** A TCP proxy in front of a PostgreSQL that counts the statements of its clients. */
export class StatementCount {
  readonly url: string;
  readonly #server: Server;
  readonly #sockets: Set<Socket>;
  readonly #counted: { statements: number };

  private constructor(url: string, server: Server, sockets: Set<Socket>, counted: { statements: number }) {
    this.url = url;
    this.#server = server;
    this.#sockets = sockets;
    this.#counted = counted;
  }

  static async before(target: string): Promise<StatementCount> {
    const { hostname, port } = new URL(target);
    const sockets = new Set<Socket>();
    const counted = { statements: 0 };
    const server = createServer((client) => {
      const upstream = connect(Number(port), hostname);
      const reader = new Messages(() => counted.statements++);
      client.on("data", (bytes) => {
        reader.read(bytes);
        upstream.write(bytes);
      });
      upstream.on("data", (bytes) => client.write(bytes));
      for (const [socket, other] of [
        [client, upstream],
        [upstream, client],
      ] as const) {
        sockets.add(socket);
        socket.on("error", () => other.destroy());
        socket.on("close", () => {
          sockets.delete(socket);
          other.destroy();
        });
      }
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const url = new URL(target);
    url.hostname = "127.0.0.1";
    url.port = String((server.address() as { port: number }).port);
    return new StatementCount(url.href, server, sockets, counted);
  }

  get statements(): number {
    return this.#counted.statements;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }
}

/** Splits a client's bytes into protocol messages. The first message starts with a length, all others with a letter and a length. */
class Messages {
  readonly #execute: () => void;
  #rest: Buffer = Buffer.alloc(0);
  #begun = false;

  constructor(execute: () => void) {
    this.#execute = execute;
  }

  read(bytes: Buffer): void {
    this.#rest = Buffer.concat([this.#rest, bytes]);
    for (;;) {
      const letters = this.#begun ? 1 : 0;
      if (this.#rest.length < letters + 4) return;
      const length = letters + this.#rest.readInt32BE(letters);
      if (this.#rest.length < length) return;
      const letter = String.fromCharCode(this.#rest[0] ?? 0);
      // "E" executes a prepared statement, and "Q" is a simple query.
      if (this.#begun && (letter === "E" || letter === "Q")) this.#execute();
      this.#begun = true;
      this.#rest = this.#rest.subarray(length);
    }
  }
}
