import { expect, test } from "vitest";
import { ask, file, here, json, start } from "./process.ts";

const get = async (address: string, path: string) => (await fetch(`http://${address}${path}`)).status;

test("carillon worker --listen answers probes and metrics, with a store and without one", async () => {
  const server = start(["server", ...here(), "--listen", "127.0.0.1:0", "--json"]);
  const [, at] = await server.says(/"listening":"([^"]+)"/);
  const own = start(["worker", "tasks.ts", ...here(), "--listen", "127.0.0.1:0", "--json"]);
  const [, ownAt = ""] = await own.says(/"listening":"([^"]+)".*worker is ready/);
  expect([await get(ownAt, "/readyz"), await get(ownAt, "/metrics")], "metrics need a token").toEqual([200, 401]);

  const env = { CARILLON_WORKER_KEY: (await json("keys", "create", "one")).key as string };
  const path = await file(
    "listens.ts",
    'import { worker } from "carillon/worker";\nexport const one = worker().task("ding", () => undefined);\n',
  );
  const remote = start(["worker", path, "--server", `http://${at}`, "--listen", "127.0.0.1:0", "--json"], { env });
  const [, remoteAt = ""] = await remote.says(/"listening":"([^"]+)".*worker is ready/);
  expect([await get(remoteAt, "/readyz"), await get(remoteAt, "/metrics")]).toEqual([200, 200]);
  const proxied = await ask("worker", path, "--server", `http://${at}`, "--trusted-proxy", "10.0.0.1");
  expect(proxied.stderr).toContain("--trusted-proxy");
});
