import { createServer, type Server } from "node:net";
import pg from "pg";
import { afterEach, beforeEach, expect, it } from "vitest";
import { systemClock } from "../../base/clock.ts";
import { CarillonError } from "../../base/errors.ts";
import { silentLog } from "../../base/log.ts";
import { systemRandom } from "../../base/random.ts";
import { Database } from "./database.ts";

const message = (kind: string, body: Buffer) => {
  const head = Buffer.alloc(5);
  head.write(kind);
  head.writeInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
};
const [letIn, ready] = [message("R", Buffer.alloc(4)), message("Z", Buffer.from("I"))];
const ended = message("E", Buffer.from("SFATAL\0C57P01\0Mterminating connection due to administrator command\0\0"));

let server: Server;
let database: Database;

/** Starts a server that accepts every client and closes the connection in the same packet. */
beforeEach(async () => {
  server = createServer((socket) => {
    socket.on("error", () => undefined); // the client may have closed the connection first
    socket.once("data", () => socket.end(Buffer.concat([letIn, ready, ended])));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  database = new Database({
    url: `postgres://somebody:secret@127.0.0.1:${port}/any`,
    schema: "any",
    clock: systemClock,
    random: systemRandom,
    log: silentLog,
    connectionsMax: 2,
  });
});
afterEach(async () => {
  await database.close();
  server.close();
});

const one = "select 1";
it("a query after the close fails with STOPPED, not with the pool's own error", async () => {
  const closed = new Database({
    url: "postgres://somebody@127.0.0.1/any",
    schema: "any",
    clock: systemClock,
    random: systemRandom,
    log: silentLog,
    connectionsMax: 2,
  });
  await closed.close();
  await expect(closed.query("one", one)).rejects.toMatchObject({ code: "STOPPED" });
  await expect(closed.transaction((client) => client.query(one))).rejects.toMatchObject({ code: "STOPPED" });
});

it.each([
  ["a transaction", () => database.transaction((client) => client.query(one))],
  ["a question", () => database.ask("one", one)],
  ["a statement", () => database.query("one", one)],
])("treats a connection that ends while it is opened as an unreachable store: %s", async (_, act) => {
  await expect(act()).rejects.toMatchObject({ code: "STORE_UNREACHABLE" });
});

it.each(["the caller gives up", "the store is closed"])(
  "makes no further try if in the pause before it %s",
  async (who) => {
    const stop = new AbortController();
    let closed: Promise<void> | undefined;
    const during = () => {
      if (who === "the caller gives up") stop.abort();
      else closed = pausing.close();
    };
    const pausing: Database = new Database({
      url: "postgres://somebody@127.0.0.1/any",
      schema: "any",
      // The only timer is that of the pause.
      clock: {
        ...systemClock,
        after: () => {
          setImmediate(during);
          return () => undefined;
        },
      },
      random: systemRandom,
      log: silentLog,
      connectionsMax: 2,
    });
    const away = new CarillonError("STORE_UNREACHABLE", "away");
    let tries = 0;
    const persisting = pausing.persist(() => {
      tries++;
      return Promise.reject(away);
    }, stop.signal);
    await expect(persisting).rejects.toBe(away);
    expect(tries).toBe(1);
    await (closed ?? pausing.close());
  },
);

it.each(["EMFILE", "ENFILE", "EADDRNOTAVAIL", "ENOBUFS"])(
  "retries if no resources are left for a connection: %s",
  async (code) => {
    let tries = 0;
    const left = () => Object.assign(new Error(`connect ${code} 127.0.0.1:5432`), { code });
    const starved = new Database({
      url: "postgres://somebody@127.0.0.1/any",
      schema: "any",
      clock: systemClock,
      random: systemRandom,
      log: silentLog,
      connectionsMax: 2,
      driver: {
        client: (config) => new pg.Client(config),
        pool: (config) => Object.assign(new pg.Pool(config), { connect: () => Promise.reject(left()) }),
      },
    });
    await expect(starved.ask("one", one)).rejects.toMatchObject({ code: "STORE_UNREACHABLE" });
    const done = starved.persist(async () => {
      tries++;
      return tries === 2 ? "done" : starved.ask("one", one);
    });
    expect(await done).toBe("done");
    await starved.close();
  },
);
