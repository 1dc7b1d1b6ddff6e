import { expect, it } from "vitest";
import { recordingLog } from "../../test/support/store-stage.ts";
import type { CarillonOptions } from "../settings/settings.ts";
import { carillon } from "./carillon.ts";

/** Starts a process whose store does not answer, and returns its warnings about TLS. */
async function warnings(options: CarillonOptions): Promise<string[]> {
  const { log, lines } = recordingLog();
  const store = "postgres://127.0.0.1:1/app";
  const tower = carillon({ store, failFast: true, handleSignals: false, log, ...options });
  await expect(tower.start()).rejects.toMatchObject({ code: "STORE_UNREACHABLE" });
  await tower.stop();
  return lines.flatMap(({ message }) => (message.includes("TLS") ? [message] : []));
}

const mail = { from: "a@b.example", to: "c@d.example" };
const why = "without TLS: others on the way can read and change it";

it("a start without requireTls warns of each service of another machine that it reaches without TLS, and of no password", async () => {
  const channels = {
    ops: { webhook: "http://hooks.example/secret" },
    post: { smtp: "smtp://me:secret@mx.example", ...mail, requireTls: false },
  };
  const found = await warnings({
    coordination: "redis+sentinel://:secret@localhost,b.example/main",
    alarms: { channels, ping: { url: "http://m.example/secret" } },
    webhooks: { billing: { url: "http://b.example/secret" } },
  });
  expect(found).toEqual([
    `coordination leads to b.example ${why}`,
    `alarms.ping.url leads to m.example ${why}`,
    `webhooks.billing leads to b.example ${why}`,
    `alarms.channels.ops leads to hooks.example ${why}`,
    `alarms.channels.post leads to mx.example ${why}`,
  ]);
});

it("a start warns of no service that is reached by TLS or is on this machine", async () => {
  const channels = {
    ops: { webhook: "https://hooks.example/secret" },
    local: { webhook: "http://127.0.0.1:8080/secret" },
    post: { smtp: "smtp://me:secret@mx.example", ...mail },
  };
  expect(await warnings({ coordination: "rediss://cache.example", alarms: { channels } })).toEqual([]);
});
