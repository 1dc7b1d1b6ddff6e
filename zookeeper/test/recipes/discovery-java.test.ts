/** Tests service discovery together with Java's curator-x-discovery on the same paths, in both directions. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { ServiceDiscovery } from "../../src/recipes/discovery/discovery.ts";
import {
  decodeInstance,
  encodeInstance,
  instanceOf,
  type NewInstance,
  uriOf,
} from "../../src/recipes/discovery/instance.ts";
import { type Java, startJava } from "../support/java.ts";
import { ownPath, sharedServer } from "../support/servers.ts";
import { Clients, until } from "./stage.ts";

describe("service discovery with Java's Curator", () => {
  let java: Java;
  let clients: Clients;
  let path: string;
  beforeAll(async () => {
    java = await startJava(sharedServer());
  });
  afterAll(() => java?.close());
  beforeEach(() => {
    clients = new Clients();
    path = `${ownPath("java")}/services`;
  });
  afterEach(() => clients.closeAll());

  const plain = { name: "mail", id: "ours", address: "10.0.0.7", port: 80, registrationTimeUTC: 1_700_000_000_000 };

  it("each side sees what the other registers, changes and removes", async () => {
    const zk = await clients.connect();
    const ours = new ServiceDiscovery<unknown>(zk, path);
    const theirs = await java.make("discovery", path);
    const registration = await ours.register({ ...plain, payload: { zone: "x" } });
    await theirs.do("provide", "mail");
    expect(await theirs.do("next")).toEqual(["ours"]);
    const provider = ours.provider("mail");
    await provider.ready;
    await theirs.do("register", encodeInstance(instanceOf({ ...plain, id: "theirs", payload: "text" })));
    await theirs.next("changed");
    await until("ours sees both", () => provider.instances.length === 2);
    expect([provider.get()?.id, provider.get()?.id]).toEqual(["ours", "theirs"]);
    expect([await ours.names(), await theirs.do("names")]).toEqual([["mail"], ["mail"]]);
    const [, read] = await ours.instances("mail");
    expect(read).toMatchObject({ id: "theirs", payload: "text", serviceType: "DYNAMIC" });
    expect((await zk.get(`${path}/mail/theirs`)).stat.ephemeralOwner).not.toBe(0n);
    await registration.update({ port: 81, payload: "moved" });
    await theirs.next("changed");
    expect(await theirs.do("instances", "mail")).toEqual([
      encodeInstance(registration.instance),
      (await zk.get(`${path}/mail/theirs`)).data.toString(),
    ]);
    await theirs.do("update", encodeInstance({ ...read!, port: 8_080 }));
    await until("ours sees the change", () => provider.instances[1]?.port === 8_080);
    await registration.close();
    await until("theirs is left", async () => (await theirs.do("instances", "mail")).length === 1);
    await theirs.do("unregister", "mail", "theirs");
    await until("none is left", () => provider.instances.length === 0);
    await Promise.all([ours.close(), theirs.do("close")]);
  });

  it.each<[string, NewInstance]>([
    ["plain", plain],
    ["a text", { ...plain, payload: 'é " \\ </>\u2028\u0001\u001f' }],
    ["a number", { ...plain, payload: 5.25 }],
    ["a class", { ...plain, payload: { "@class": "java.util.LinkedHashMap", a: [1, { b: true }], c: null } }],
    ["a list", { ...plain, payload: ["java.util.ArrayList", [1, "a"]] }],
    ["static", { ...plain, serviceType: "STATIC", sslPort: 443 }],
    ["a URI", { ...plain, uriSpec: "{scheme}://{address}:{port}/{name}/{id}/{service-type}?{registration-time-utc}" }],
    ["disabled", { ...plain, enabled: false }],
  ])("Java writes the same bytes for: %s", async (_, given) => {
    const theirs = await java.make("discovery", path);
    const instance = instanceOf(given);
    const json = encodeInstance(instance);
    expect(await theirs.do("again", json, !instance.enabled)).toEqual([json]);
    expect(decodeInstance(Buffer.from(json), "/mail/ours")).toEqual(instance);
    if (instance.uriSpec) expect(await theirs.do("uri", json)).toEqual([uriOf(instance)]);
    await theirs.do("close");
  });
});
