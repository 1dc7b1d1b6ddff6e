import { createServer, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Acl, connect, type ZooKeeper } from "../../src/index.ts";
import { Reader, Writer } from "../../src/wire/bytes.ts";
import { Clients } from "../recipes/stage.ts";
import { op, ZooKeeperProxy } from "../support/proxy.ts";
import { ownPath, serverTitle, sharedServer } from "../support/servers.ts";

const settled = (promises: readonly Promise<unknown>[]) => Promise.allSettled(promises);

/** Formats the results of reads: the text that was read, or the error's code. */
const told = (results: PromiseSettledResult<unknown>[]) =>
  results.map((one) =>
    one.status === "fulfilled" ? `${(one.value as { data: Buffer }).data}` : (one.reason as { code: string }).code,
  );

describe(`consecutive reads share requests, ${serverTitle()}`, () => {
  let clients: Clients;
  let proxy: ZooKeeperProxy;
  let path: string;
  let zk: ZooKeeper;
  beforeEach(async () => {
    clients = new Clients();
    proxy = await ZooKeeperProxy.before(sharedServer());
    path = ownPath("together");
    zk = await clients.connect({}, proxy.address);
    await zk.create(path, "top");
  });
  afterEach(async () => {
    await clients.closeAll();
    await proxy.close();
  });

  test("a thousand reads at once take a few requests, each with its own answer or error", async () => {
    const mine: Acl[] = [{ scheme: "digest", id: "me:nobody", permissions: ["admin"] }];
    await Promise.all(Array.from({ length: 1_000 }, (_, at) => at % 3 && zk.create(`${path}/${at}`, `data ${at}`)));
    await zk.setAcl(`${path}/7`, mine);
    const reads = Array.from({ length: 1_000 }, (_, at) => zk.get(`${path}/${at}`));
    const wanted = reads.map((_, at) => (at === 7 ? "NO_AUTH" : at % 3 ? `data ${at}` : "NO_NODE"));
    expect(told(await settled(reads))).toEqual(wanted);
    expect(proxy.requests(op.multiRead)).toBeLessThan(40);
    expect(proxy.requests(op.getData)).toBeLessThan(20);
    // A few reads are sent one by one, because waiting for more reads would gain nothing.
    const before = proxy.requests(op.multiRead);
    await Promise.all([zk.get(path), zk.get(path), zk.get(path)]);
    expect(proxy.requests(op.multiRead)).toBe(before);
  });

  test("each read sees the writes before it and no later write", async () => {
    const reads: Promise<unknown>[] = [];
    const wanted: string[] = [];
    for (let at = 0; at < 300; at++) {
      void zk.set(path, `${at}`);
      for (let again = 0; again <= at % 5; again++) {
        reads.push(zk.get(path));
        wanted.push(`${at}`);
      }
    }
    expect(told(await settled(reads))).toEqual(wanted);
    expect(proxy.requests(op.multiRead)).toBeGreaterThan(200);
  });

  test("an aborted read does not affect the answers of other reads", async () => {
    const abort = new AbortController();
    const reads = Array.from({ length: 100 }, (_, at) => zk.get(path, at % 10 === 5 ? { signal: abort.signal } : {}));
    setImmediate(() => abort.abort());
    const results = told(await settled(reads));
    expect(results).toEqual(results.map((_, at) => (at % 10 === 5 ? "ABORTED" : "top")));
  });

  test("if the connection is lost before the answer, all reads are sent again on the next one", async () => {
    const lost = proxy.swallowReply(op.multiRead);
    const reads = Array.from({ length: 200 }, () => zk.get(path));
    await lost;
    expect(told(await settled(reads))).toEqual(reads.map(() => "top"));
    expect(proxy.accepted).toBe(2);
  });

  test("if the client is closed before the answers, each read fails with CLOSED", async () => {
    proxy.pause();
    const reads = Array.from({ length: 100 }, () => zk.get(path));
    const results = settled(reads);
    await zk.close();
    expect(new Set(told(await results))).toEqual(new Set(["CLOSED"]));
  });

  test("answers too large together are requested one by one; one too large alone fails alone", async () => {
    const small = await clients.connect({ maxReplyBytes: 60_000 }, proxy.address);
    await Promise.all([zk.create(`${path}/large`, "x".repeat(70_000)), zk.create(`${path}/some`, "y".repeat(5_000))]);
    const names = Array.from({ length: 200 }, (_, at) => (at % 50 === 49 ? "large" : "some"));
    const results = told(await settled(names.map((name) => small.get(`${path}/${name}`))));
    expect(results).toEqual(names.map((name) => (name === "large" ? "REPLY_TOO_LARGE" : "y".repeat(5_000))));
    const before = proxy.requests(op.multiRead);
    await Promise.all(names.map(() => small.get(`${path}/some`)));
    expect(proxy.requests(op.multiRead)).toBe(before);
  });
});

test("reads from a server before 3.6 are sent one by one, and never combined again", async () => {
  await using old = await OldServer.start();
  const zk = await connect(old.address, { sessionTimeoutMs: 10_000 });
  const read = () => settled(Array.from({ length: 100 }, (_, at) => zk.get(`/${at}`)));
  const wanted = Array.from({ length: 100 }, (_, at) => `of /${at}`);
  expect(told(await read())).toEqual(wanted);
  const refused = old.refused;
  expect(refused).toBeGreaterThan(0);
  expect(told(await read())).toEqual(wanted);
  expect(old.refused).toBe(refused);
  await zk.close();
});

/**
 * A fake server without `multiRead`, such as 3.5: it refuses `multiRead` as unimplemented (-6), answers `getData`, and answers each other
 * request with success and no body.
 */
class OldServer {
  refused = 0;
  readonly #sockets = new Set<Socket>();
  readonly #server = createServer((socket) => this.#serve(socket));

  static async start(): Promise<OldServer> {
    const server = new OldServer();
    await new Promise<void>((resolve) => server.#server.listen(0, "127.0.0.1", resolve));
    return server;
  }

  get address(): string {
    const address = this.#server.address();
    return typeof address === "object" && address ? `127.0.0.1:${address.port}` : "";
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket);
    const writer = new Writer();
    let welcome = true;
    const answer = (body: () => void) => {
      writer.beginFrame();
      body();
      writer.endFrame();
      socket.write(writer.take());
    };
    const request = (reader: Reader) => {
      if (welcome) {
        welcome = false;
        answer(() => {
          writer.int(0);
          writer.int(10_000);
          writer.long(1n);
          writer.buffer(Buffer.alloc(16));
          writer.bool(false);
        });
        return;
      }
      const xid = reader.int();
      const code = reader.int();
      answer(() => {
        writer.int(xid);
        writer.long(1n);
        writer.int(code === op.multiRead ? -6 : 0);
        if (code === op.multiRead) this.refused++;
        if (code !== op.getData) return;
        writer.buffer(`of ${reader.string()}`);
        for (let field = 0; field < 68; field += 4) writer.int(0); // the node's stat
      });
    };
    let rest = Buffer.alloc(0);
    socket.on("data", (bytes) => {
      rest = Buffer.concat([rest, bytes]);
      while (rest.length >= 4 && rest.length >= 4 + rest.readInt32BE(0)) {
        const end = 4 + rest.readInt32BE(0);
        request(new Reader().over(rest, 4, end));
        rest = rest.subarray(end);
      }
    });
    socket.on("error", () => undefined);
  }
}
