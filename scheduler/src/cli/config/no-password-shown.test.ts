import { describe, expect, it } from "vitest";
import { client } from "../../api/client.ts";
import { servicePlace } from "../../cluster/membership-provider.ts";
import { lookAtCoordination } from "../../coordination/open.ts";
import { parseRedisUrl } from "../../coordination/redis/address.ts";
import { serviceAddress } from "../../coordination/service-address.ts";
import { workerSettingsOf } from "../../settings/remote-worker.ts";
import { type CarillonOptions, settingsOf } from "../../settings/settings.ts";
import { urlPlace } from "../store-choice.ts";
import { serverUrl } from "./profiles.ts";

/** Texts between `scheme://` and the host, each with "canary" in the password, which is not escaped as a URL needs it. */
const userinfos = [
  "me:canary",
  ":canary",
  "me:can@canary",
  "me:canary/x",
  "me:x/canary",
  "me:12/canary",
  "me:canary?x",
  "me:12?canary",
  "me:12/0?canary",
  "me:12?prefix=canary",
  "me:canary#x",
  "me:12#canary",
  "me:x,canary:99999/y",
  "me:canary%zz",
];

const option = (given: CarillonOptions) => () => settingsOf({ store: "embedded", requireTls: true, ...given });
const channel = (one: object) => option({ alarms: { channels: { one } } } as CarillonOptions);
const mail = (smtp: string) => channel({ smtp, from: "a@b.example", to: "c@d.example" });

/** For each kind of URL a function that returns or throws what users may see of it. */
const readers: Record<string, (userinfo: string) => unknown> = {
  store: (me) => option({ store: `postgres://${me}@db.example/app` })(),
  "store of several hosts": (me) => option({ store: `postgres://${me}@a.example:1,b.example:2/app` })(),
  listenUrl: (me) => option({ listenUrl: `postgres://${me}@db.example/app` })(),
  Redis: (me) => lookAtCoordination(`redis://${me}@h.invalid:0/x`),
  "Redis in the log": (me) => parseRedisUrl(`redis://${me}@h`).text,
  "Redis of TLS": (me) => option({ coordination: `redis://${me}@h.example` })(),
  "Redis with a sentinel's password": () => servicePlace("redis+sentinel://h/m?sentinelPassword=a@canary"),
  "Redis with an option too many": () => lookAtCoordination("redis://h?sentinelPassword=a&canary"),
  "Redis without a host": () => lookAtCoordination("redis://:canary"),
  ZooKeeper: (me) => lookAtCoordination(`zookeeper://${me}@[h/a`),
  "ZooKeeper without a host": () => lookAtCoordination("zookeeper://me:canary"),
  "an unknown service": (me) => lookAtCoordination(`etcd://${me}@h`),
  "an address in the cluster": (me) => [serviceAddress(`redis://${me}@h`), servicePlace(`redis://${me}@h`)],
  "the place of a store": (me) => urlPlace(`postgres://${me}@db.example/app`),
  server: (me) => serverUrl(`http://${me}@c.example`, "--server", {}),
  "servers of a worker": (me) => workerSettingsOf({ server: `http://${me}@c.example`, key: "k" }),
  client: (me) => client({ server: `http://${me}@127.0.0.1:9` }).search({ q: "x" }),
  webhook: (me) => channel({ webhook: `http://${me}@h.example/` })(),
  slack: (me) => channel({ slack: `http://${me}@h.example/` })(),
  mail: (me) => mail(`smtp://${me}@mx.example`)(),
  ping: (me) => option({ alarms: { ping: { url: `http://${me}@h.example/` } } } as CarillonOptions)(),
  "a webhook of events": (me) => option({ webhooks: { one: { url: `http://${me}@h.example` } } })(),
  proxies: (me) => option({ behindProxy: true, trustedProxies: [`http://${me}@p.example`] })(),
  frames: (me) => option({ frameAncestors: [`https://${me}@p.example`] })(),
};

/** Returns the text that users see: an error's message and hint, or a text. Settings are no text, because they hold the URL itself. */
async function seen(read: () => unknown): Promise<string> {
  try {
    const shown = await read();
    return typeof shown === "string" || Array.isArray(shown) ? JSON.stringify(shown) : "";
  } catch (error) {
    const { code, message, hint } = error as { code?: string; message: string; hint?: string };
    expect(code, message).toMatch(/^[A-Z_]+$/);
    return JSON.stringify([message, hint]);
  }
}

describe("a password that is not escaped is shown in no error and no address", () => {
  it.each(Object.entries(readers))("%s", async (_, read) => {
    for (const me of userinfos) expect(await seen(async () => read(me)), me).not.toContain("canary");
  });
});
