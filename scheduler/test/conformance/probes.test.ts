import { afterAll, beforeAll, expect, it } from "vitest";
import { carillon } from "../../src/library/carillon.ts";
import { StoreProxy } from "../support/proxy.ts";
import { RemoteStage } from "../support/remote-stage.ts";
import { postgres } from "../support/servers.ts";
import { recordingLog, until } from "../support/store-stage.ts";

const stage = new RemoteStage();
let proxy: StoreProxy;
beforeAll(async () => {
  await stage.serve();
  proxy = await StoreProxy.before(postgres().url);
});
afterAll(async () => {
  await stage.close();
  await proxy.close();
});

const probe = async (at: string | null, path: string) => {
  const response = await fetch(`http://${at}${path}`);
  return [response.status, await response.json()];
};

it("probes disclose only that a node is live and ready, to any caller; without the store it is live, not ready", async () => {
  const { log } = recordingLog();
  const tower = carillon({
    store: proxy.url,
    schema: stage.schema,
    worker: false,
    listen: "127.0.0.1:0",
    handleSignals: false,
    log,
    sessionTimeout: 6_000,
    drain: "5s",
  });
  await tower.start();
  const at = tower.listening;
  try {
    expect(await probe(at, "/livez")).toEqual([200, { live: true }]);
    for (const path of ["/readyz", "/healthz"])
      expect(await probe(at, path)).toEqual([200, { ready: true, why: null }]);
    proxy.hang();
    const ready = async () => (await probe(at, "/readyz")) as [number, { why: string }];
    await until("it is not ready", async () => (await ready())[0] === 503);
    expect(await ready()).toEqual([503, { ready: false, why: "store" }]);
    expect(await probe(at, "/livez")).toEqual([200, { live: true }]);
    proxy.heal();
    await until("it is ready again", async () => (await ready())[0] === 200);
  } finally {
    proxy.heal();
    await tower.stop();
  }
});
