import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connect, fourLetterWord, parseConfig, type ZooKeeper } from "../../src/index.ts";
import { Ensemble } from "../../src/testing/ensemble.ts";
import { serverTitle, sharedServer } from "../support/servers.ts";

const sessionTimeoutMs = 30_000;

describe(`changes of an ensemble, ${serverTitle()}`, () => {
  let ensemble: Ensemble;
  let zk: ZooKeeper;
  beforeAll(async () => {
    const config = { reconfigEnabled: true };
    ensemble = await Ensemble.start({ servers: 3, tickTime: 200, superPassword: "secret", config });
    zk = await connect(ensemble.connectString(), { sessionTimeoutMs });
  });
  afterAll(async () => {
    await zk?.close();
    await ensemble?.stop();
  });

  test("a server leaves and joins again, and the configuration lists the client addresses", async () => {
    const before = parseConfig((await zk.config()).data);
    expect(before.servers.map(({ id }) => id).sort()).toEqual(["1", "2", "3"]);
    expect(new Set(before.servers.map(({ client }) => client))).toEqual(new Set(ensemble.connectString().split(",")));
    // The leaving server must be a follower, because a leader that leaves ends all connections.
    const [follower] = await ensemble.followers();
    const leaving = [follower?.id ?? 0];
    const itself = before.servers.find(({ id }) => id === String(leaving[0]));
    zk.setServers((await ensemble.leader()).address);
    await expect(zk.reconfig({ leaving })).rejects.toMatchObject({ code: "NO_AUTH" });
    await zk.addAuth("digest", "super:secret");
    await expect(zk.reconfig({ leaving, version: before.version + 1n })).rejects.toMatchObject({
      code: "BAD_VERSION",
    });
    const watched = new Promise((resolve) => void zk.config({ watch: resolve }));
    const left = parseConfig((await zk.reconfig({ leaving, version: before.version })).data);
    expect(left.servers).toEqual(before.servers.filter((server) => server !== itself));
    expect(left.version).toBeGreaterThan(before.version);
    expect(await watched).toMatchObject({ type: "changed", path: "/zookeeper/config" });
    const joined = parseConfig((await zk.reconfig({ joining: [itself?.text ?? ""] })).data);
    expect(joined.servers).toHaveLength(3);
    const all = parseConfig((await zk.reconfig({ members: joined.servers.map(({ text }) => text) })).data);
    expect(all.servers).toEqual(joined.servers);
  });

  test("a client moves to other servers with its session, and stays if its server is still listed", async () => {
    const [one, two] = ensemble.servers.map(({ address }) => address) as [string, string];
    const moving = await connect(`${one}/zookeeper`, { sessionTimeoutMs });
    const { id } = moving.session;
    const states: string[] = [];
    moving.onState((state) => states.push(state));
    moving.setServers(`${two},${one}`);
    expect((await moving.get("/config")).data.length).toBeGreaterThan(0);
    expect(states).toEqual([]);
    moving.setServers(`${two}/zookeeper`);
    // `setServers` must already have left the old server. Otherwise that server would get the call, whose outcome would be unknown.
    await expect(moving.set("/config", "")).rejects.toMatchObject({ code: "NO_AUTH" });
    expect([moving.session.id, states]).toEqual([id, ["suspended", "connected"]]);
    const connections = (await ensemble.servers[1]?.connections()) ?? [];
    expect(connections.map(({ session }) => session)).toContain(`0x${id.toString(16)}`);
    expect(() => moving.setServers(`${one}/other`)).toThrow(
      expect.objectContaining({ code: "CONNECT_STRING_INVALID" }),
    );
    expect(() => moving.setServers("")).toThrow(expect.objectContaining({ code: "CONNECT_STRING_INVALID" }));
    await moving.close();
    expect(() => moving.setServers(one)).toThrow(expect.objectContaining({ code: "CLOSED" }));
  });

  test("a session that waits for a server continues on one added meanwhile", async () => {
    const [one, two] = ensemble.servers.map(({ address }) => address) as [string, string];
    const moving = await connect(one, { sessionTimeoutMs });
    const { id } = moving.session;
    moving.setServers("127.0.0.1:1");
    const read = moving.exists("/");
    moving.setServers(two);
    expect(await read).toBeDefined();
    expect(moving.session.id).toBe(id);
    await moving.close();
  });
});

describe(`refused changes, ${serverTitle()}`, () => {
  test("are refused by a server that disables them, or before they are sent", async () => {
    const zk = await connect(sharedServer(), { sessionTimeoutMs });
    await expect(zk.reconfig({ leaving: [1] })).rejects.toMatchObject({
      code: expect.stringMatching(/^(RECONFIG_DISABLED|UNIMPLEMENTED)$/),
    });
    for (const options of [
      {},
      { members: ["a"], leaving: [1] },
      { joining: "a" },
      { leaving: [1], version: 1 },
      null,
    ]) {
      await expect(zk.reconfig(options as never)).rejects.toMatchObject({ code: "OPTION_INVALID" });
    }
    await zk.close();
  });
});

describe(`four-letter words, ${serverTitle()}`, () => {
  test("are answered outside a session, on the plain and the secure port", async () => {
    await using secure = await Ensemble.start({ tls: true });
    const { ca, cert, key } = secure.tls ?? {};
    expect(await fourLetterWord(secure.server.address, "srvr")).toMatch(/^Mode: standalone$/m);
    const port = secure.server.securePort;
    expect(await fourLetterWord(`localhost:${port}`, "ruok", { tls: { ca, cert, key } })).toBe("imok");
  });

  test("that are forbidden, unanswered or invalid give different errors", async () => {
    await using ensemble = await Ensemble.start({ config: { "4lw.commands.whitelist": "srvr" } });
    const { address } = ensemble.server;
    await expect(fourLetterWord(address, "mntr")).rejects.toMatchObject({ code: "UNIMPLEMENTED" });
    const signal = AbortSignal.abort();
    await expect(fourLetterWord(address, "srvr", { signal })).rejects.toMatchObject({ code: "ABORTED" });
    ensemble.server.freeze();
    await expect(fourLetterWord(address, "srvr", { limitMs: 200 })).rejects.toMatchObject({ code: "UNREACHABLE" });
    await ensemble.server.kill();
    await expect(fourLetterWord(address, "srvr")).rejects.toMatchObject({ code: "UNREACHABLE" });
    await expect(fourLetterWord(address, "status")).rejects.toMatchObject({ code: "OPTION_INVALID" });
    await expect(fourLetterWord(`${address},${address}`, "srvr")).rejects.toMatchObject({
      code: "CONNECT_STRING_INVALID",
    });
  });
});
