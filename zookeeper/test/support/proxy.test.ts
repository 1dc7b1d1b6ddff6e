import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { afterEach, beforeEach, expect, it } from "vitest";
import { fourLetter } from "../../src/testing/four-letter.ts";
import { op, ZooKeeperProxy } from "./proxy.ts";
import { sharedServer } from "./servers.ts";

let proxy: ZooKeeperProxy;
let client: BareClient;

beforeEach(async () => {
  proxy = await ZooKeeperProxy.before(sharedServer());
  client = await BareClient.connect(proxy.address);
});

afterEach(async () => {
  client.socket.destroy();
  await proxy.close();
});

it("forwards frames, and counts requests by kind", async () => {
  await client.exists();
  const next = proxy.next(op.exists);
  await Promise.all([client.exists(), client.exists(), next]);
  expect([proxy.requests(op.exists), proxy.requests(op.create), proxy.accepted, proxy.open]).toEqual([3, 0, 1, 1]);
});

it.each(["both", "toServer", "toClient"] as const)("holds back data %s while paused", async (direction) => {
  proxy.pause(direction);
  let came = false;
  const reply = client.exists().then(() => {
    came = true;
  });
  // Another connection has got an answer from the server in the meantime, so without the pause this connection's answer could have come
  // too.
  if (direction === "toClient") await proxy.next(op.exists);
  await fourLetter(Number(sharedServer().split(":")[1]), "ruok");
  expect(came).toBe(false);
  proxy.resume(direction);
  await reply;
});

it("holds back a connection's end while paused", async () => {
  proxy.pause("toClient");
  client.send(op.closeSession);
  await proxy.next(op.closeSession);
  await fourLetter(Number(sharedServer().split(":")[1]), "ruok");
  expect(client.ended).toBe(false);
  proxy.resume("toClient");
  await client.end;
  expect(client.received).toBe(1); // the reply was delivered before the end of the connection
});

it("delays and throttles", async () => {
  proxy.delay(60, "toClient");
  const delayed = performance.now();
  await client.exists();
  expect(performance.now() - delayed).toBeGreaterThanOrEqual(55);
  proxy.delay(0);
  proxy.throttle(1_000);
  const throttled = performance.now();
  await Promise.all([client.exists(), client.exists()]); // 2 requests of 18 bytes, 2 replies of 88 bytes
  expect(performance.now() - throttled).toBeGreaterThanOrEqual(100);
});

it("swallows one reply, and then resets the connection or stays silent", async () => {
  const silent = proxy.swallowReply(op.exists, "silence");
  client.send(op.exists);
  await silent;
  await client.exists(); // shows that the connection still works
  expect(client.received).toBe(1);
  const swallowed = proxy.swallowReply(op.exists);
  client.send(op.exists);
  await Promise.all([swallowed, client.end]);
  expect(client.received).toBe(1);
});

it("cuts a reply in the middle", async () => {
  const cut = proxy.swallowReply(op.exists, { bytes: 10 });
  client.send(op.exists);
  await Promise.all([cut, client.end]);
  expect(client.leftover).toBe(10);
});

it("forwards nothing after a cut reply, even if the next reply came with it", async () => {
  // The server answers the handshake, and then two requests in one write.
  const server = createServer((socket) => {
    socket.on("error", () => undefined); // the proxy resets the connection
    socket.once("data", () => {
      socket.write(replyTo(0));
      let bytes = 0;
      socket.on("data", (more) => {
        bytes += more.length;
        if (bytes === 2 * requestBytes) socket.write(Buffer.concat([replyTo(1), replyTo(2)]));
      });
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  await using its = await ZooKeeperProxy.before(`127.0.0.1:${(server.address() as AddressInfo).port}`);
  const other = await BareClient.connect(its.address);
  const cut = its.swallowReply(op.exists, { bytes: 10 });
  other.send(op.exists);
  other.send(op.exists);
  await Promise.all([cut, other.end]);
  expect([other.received, other.leftover]).toEqual([0, 10]);
  await new Promise((resolve) => server.close(resolve));
});

/** The size in bytes of an exists request of `BareClient`, including its length prefix. */
const requestBytes = 18;

/** Encodes a reply that has only a header. */
function replyTo(xid: number): Buffer {
  const reply = Buffer.alloc(4 + 16);
  reply.writeInt32BE(16, 0);
  reply.writeInt32BE(xid, 4);
  return reply;
}

it("resets and refuses connections, and accepts them again", async () => {
  proxy.refuse();
  await client.end;
  await expect(BareClient.connect(proxy.address)).rejects.toThrow();
  proxy.accept();
  const another = await BareClient.connect(proxy.address);
  await another.exists();
  another.socket.destroy();
});

/** A minimal client that only sends requests and counts replies. */
class BareClient {
  readonly socket: Socket;
  readonly end: Promise<void>;
  ended = false;
  /** Number of complete replies so far, without the handshake's. */
  received = -1;
  #bytes: Buffer = Buffer.alloc(0);
  readonly #waiting: (() => void)[] = [];
  #xid = 0;

  private constructor(socket: Socket) {
    this.socket = socket;
    this.end = new Promise((resolve) => {
      socket.on("close", () => {
        this.ended = true;
        resolve();
      });
    });
    socket.on("data", (bytes) => {
      this.#bytes = Buffer.concat([this.#bytes, bytes]);
      while (this.#bytes.length >= 4 && this.#bytes.length >= 4 + this.#bytes.readInt32BE(0)) {
        this.#bytes = this.#bytes.subarray(4 + this.#bytes.readInt32BE(0));
        this.received++;
        this.#waiting.shift()?.();
      }
    });
  }

  get leftover(): number {
    return this.#bytes.length;
  }

  static async connect(address: string): Promise<BareClient> {
    const [host, port] = address.split(":");
    const client = new BareClient(connect(Number(port), host));
    const broken = new Promise<never>((_, reject) => {
      client.socket.on("error", reject);
      client.socket.on("close", () => reject(new Error("closed")));
    });
    broken.catch(() => undefined); // reported below while connecting, afterwards by `end`
    const hello = Buffer.alloc(4 + 45);
    hello.writeInt32BE(45, 0);
    hello.writeInt32BE(10_000, 4 + 12); // the session timeout
    hello.writeInt32BE(16, 4 + 24); // 16 is the length of the password; zeros mean a new session
    client.socket.write(hello);
    await Promise.race([client.#reply(), broken]);
    return client;
  }

  #reply(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  send(opcode: number): void {
    const body = opcode === op.exists ? Buffer.from([0, 0, 0, 1, "/".charCodeAt(0), 0]) : Buffer.alloc(0);
    const head = Buffer.alloc(12);
    head.writeInt32BE(8 + body.length, 0);
    head.writeInt32BE(++this.#xid, 4);
    head.writeInt32BE(opcode, 8);
    this.socket.write(Buffer.concat([head, body]));
  }

  exists(): Promise<void> {
    this.send(op.exists);
    return this.#reply();
  }
}
