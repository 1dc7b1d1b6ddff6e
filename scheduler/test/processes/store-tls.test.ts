import { chmodSync } from "node:fs";
import { carillon } from "carillon";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import { systemRandom } from "../../src/base/random.ts";
import { Database } from "../../src/store/postgres/database.ts";
import { recordingLog, until } from "../support/store-stage.ts";
import { TlsStore } from "../support/tls-store.ts";

describe("a store that accepts only TLS, with its own certificate authority", () => {
  let server: TlsStore;
  let verified: string;
  beforeAll(async () => {
    server = await TlsStore.start();
    verified = `sslmode=verify-full&sslrootcert=${server.file("authority.pem")}`;
  });
  afterAll(() => server?.close());

  const opening = async (store: string) => {
    const schema = store.includes("//certified@") ? "certified" : "tls";
    const tower = carillon({ store, failFast: true, handleSignals: false, log: silentLog, schema });
    try {
      await tower.open();
      return "opened";
    } finally {
      await tower.stop();
    }
  };

  it("gets all connections of a node over TLS: for statements, for signals and of the stand-in thread", async () => {
    const tower = carillon({ store: server.url(verified), handleSignals: false, log: silentLog, schema: "tls" });
    const sql = new pg.Client(server.url(verified));
    await sql.connect();
    try {
      const busy = tower.task("busy", {}, () => {
        const until = performance.now() + 1_000;
        while (performance.now() < until);
      });
      await tower.start();
      const { store } = await tower.open();
      let found: { name: string; ssl: boolean }[] = [];
      // The stand-in thread is ready a second after the start, and takes over when a handler blocks the event loop after that.
      await until("the thread to have asked the store", async () => {
        const { runId } = await busy.enqueue();
        await until("the run to end", async () => (await store.runs.find(runId)).state === "succeeded");
        const { rows } = await sql.query(
          `select distinct case when query like any (array['%still_ms = $2%', '%"taskId", attempt from%']) then 'thread'
             else application_name end as name, ssl
           from pg_stat_ssl join pg_stat_activity using (pid) where application_name like 'carillon%' order by name`,
        );
        found = rows;
        return found.some(({ name }) => name === "thread");
      });
      expect(found).toEqual(["carillon", "carillon listener", "thread"].map((name) => ({ name, ssl: true })));
    } finally {
      await tower.stop();
      await sql.end();
    }
  });

  it("also gets the cancellation of an abandoned statement over TLS", async () => {
    const surroundings = { clock: systemClock, random: systemRandom, log: silentLog };
    const database = new Database({ url: server.url(verified), schema: "tls", connectionsMax: 1, ...surroundings });
    try {
      await expect(database.limited("select pg_sleep(600)", 100)).rejects.toMatchObject({ code: "57014" });
    } finally {
      await database.close();
    }
  });

  it.each([
    ["verified", () => server.url(verified)],
    ["of several hosts", () => server.url(verified, ["localhost", "localhost"])],
    [
      "by a client's certificate",
      () =>
        server.url(
          `${verified}&sslcert=${server.file("certified.pem")}&sslkey=${server.file("certified.key")}`,
          ["localhost"],
          "certified",
        ),
    ],
  ])("is opened: %s", async (_, url) => {
    expect(await opening(url())).toBe("opened");
  });

  it.each([
    ["without TLS", () => server.url(""), "STORE_TLS", /the store wants TLS/, /sslmode=verify-full/],
    [
      "with another authority",
      () => server.url(`sslmode=verify-full&sslrootcert=${server.file("stranger.pem")}`),
      "STORE_TLS",
      /certificate cannot be verified/,
      /sslrootcert/,
    ],
    [
      "with no authority",
      () => server.url("sslmode=verify-full"),
      "STORE_TLS",
      /certificate cannot be verified/,
      /sslrootcert/,
    ],
    [
      "by another name",
      () => server.url(verified, ["127.0.0.1"]),
      "STORE_TLS",
      /is for another host/,
      /name that the certificate has/,
    ],
    [
      "by other names, of several hosts",
      () => server.url(verified, ["127.0.0.1", "127.0.0.1"]),
      "STORE_TLS",
      /none of the store's 2 hosts/,
      /name that the certificate has/,
    ],
    [
      "in libpq's weaker modes, which verify here too",
      () => server.url("sslmode=require"),
      "STORE_TLS",
      /certificate cannot be verified/,
      /sslrootcert/,
    ],
    [
      "without the client's certificate",
      () => server.url(verified, ["localhost"], "certified"),
      "STORE_TLS",
      /wants the certificate of a client/,
      /sslcert=FILE/,
    ],
    [
      "with a file of its authority that is not there",
      () => server.url("sslmode=verify-full&sslrootcert=/none/ca.pem"),
      "FILE_INVALID",
      /sslrootcert of the store's URL cannot be read/,
      /PEM/,
    ],
  ])("is refused without retries: %s", async (_, url, code, message, hint) => {
    await expect(opening(url())).rejects.toMatchObject({
      code,
      message: expect.stringMatching(message),
      hint: expect.stringMatching(hint),
    });
  });

  it("refuses a client key that other users may read", async () => {
    chmodSync(server.file("authority.key"), 0o644);
    const url = server.url(
      `${verified}&sslcert=${server.file("certified.pem")}&sslkey=${server.file("authority.key")}`,
    );
    await expect(opening(url)).rejects.toMatchObject({ code: "SECRET_KEY_OPEN" });
  });
});

it("a remote store without TLS causes a warning at the start, unless the URL asks for no TLS", async () => {
  const warnings = async (store: string) => {
    const { log, lines } = recordingLog();
    const tower = carillon({ store, failFast: true, handleSignals: false, log });
    await expect(tower.start()).rejects.toMatchObject({ code: "STORE_UNREACHABLE" });
    await tower.stop();
    return lines.flatMap(({ message }) => (message.includes("TLS") ? [message] : []));
  };
  expect(await warnings("postgres://me:secret@db.invalid/app")).toEqual([
    "the store at db.invalid is reached without TLS: whoever is on the way can read and change payloads, results and statements",
  ]);
  expect(await warnings("postgres://me:secret@db.invalid/app?sslmode=disable")).toEqual([]);
});
