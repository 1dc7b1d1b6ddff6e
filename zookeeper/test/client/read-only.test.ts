import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connect, Mutex, type Session } from "../../src/index.ts";
import { Ensemble } from "../../src/testing/ensemble.ts";
import { serverTitle } from "../support/servers.ts";

const properties = { "readonlymode.enabled": "true" };
const options = { sessionTimeoutMs: 6_000, connectTimeoutMs: 60_000, readOnly: true };

const end = ({ signal }: Session) =>
  new Promise((resolve) => signal.addEventListener("abort", () => resolve(signal.reason), { once: true }));

test("a server without a quorum and without local sessions refuses a connection with the reason", async () => {
  await using ensemble = await Ensemble.start({ servers: 3, properties });
  await Promise.all(ensemble.servers.slice(1).map((server) => server.kill()));
  const lines: string[] = [];
  const stop = new AbortController();
  const log = (line: string) => {
    lines.push(line);
    if (line.includes("the server is read-only")) stop.abort();
  };
  const connecting = connect(ensemble.server.address, { ...options, log, signal: stop.signal });
  await expect(connecting).rejects.toMatchObject({ code: "ABORTED" });
  expect(lines.at(-1)).toContain("the beginning of a session: the server is read-only");
});

describe(`a server without a quorum, ${serverTitle()}`, () => {
  let ensemble: Ensemble;
  beforeAll(async () => {
    const config = { localSessionsEnabled: true, localSessionsUpgradingEnabled: true };
    ensemble = await Ensemble.start({ servers: 3, properties, config });
    const zk = await connect(ensemble.connectString());
    await zk.create("/kept", "1");
    await zk.close();
    await Promise.all(ensemble.servers.slice(1).map((server) => server.kill()));
  });
  afterAll(() => ensemble?.stop());

  test("refuses clients that do not allow read-only connections", async () => {
    const address = ensemble.server.address;
    await expect(connect(address, { connectTimeoutMs: 1_000 })).rejects.toMatchObject({ code: "UNREACHABLE" });
  });

  test("answers reads and refuses writes; the session ends once a server with a quorum is found", async () => {
    await using other = await Ensemble.start();
    await other.server.kill();
    const lines: string[] = [];
    const log = (line: string) => lines.push(line);
    const zk = await connect(`${ensemble.connectString()},${other.connectString()}`, { ...options, log });
    const { session } = zk;
    expect(session).toMatchObject({ readOnly: true, live: true });
    expect((await zk.get("/kept")).data.toString()).toBe("1");
    await expect(zk.set("/kept", "2")).rejects.toMatchObject({ code: "NOT_READ_ONLY" });
    await expect(new Mutex(zk, "/lock").acquire()).rejects.toMatchObject({ code: "NOT_READ_ONLY" });
    expect(lines.join("\n")).toContain("has no quorum: it answers reads only");
    const ended = end(session);
    await other.server.start();
    expect(await ended).toMatchObject({ code: "SESSION_EXPIRED", message: expect.stringContaining("has a quorum") });
    expect((await zk.established()).readOnly).toBe(false);
    await zk.create("/elsewhere");
    await zk.close();
  });

  test("gets its quorum back, and the client gets a session that can write", async () => {
    const zk = await connect(ensemble.connectString(), options);
    expect(zk.session.readOnly).toBe(true);
    const ended = end(zk.session);
    await ensemble.startAll();
    expect(await ended).toMatchObject({ code: "SESSION_EXPIRED" });
    expect((await zk.established()).readOnly).toBe(false);
    expect((await zk.set("/kept", "3")).version).toBe(1);
    await zk.close();
  });
});
