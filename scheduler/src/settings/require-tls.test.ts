import { expect, it } from "vitest";
import { settingsOf } from "./settings.ts";

const hook = (webhook: string) => ({ channels: { ops: { webhook } } });

it.each<[string, object, string]>([
  ["the store", { store: "postgres://db.example/app" }, "store"],
  ["the store that is said to be meant so", { store: "postgres://db.example/app?sslmode=disable" }, "store"],
  ["where it is listened", { store: "postgres://localhost/app", listenUrl: "postgres://db.example/app" }, "listenUrl"],
  ["Redis", { coordination: "redis://:secret@cache.example:6379" }, "coordination"],
  [
    "sentinels, one of which is elsewhere",
    { coordination: "redis+sentinel://localhost,b.example/main" },
    "coordination",
  ],
  ["ZooKeeper", { coordination: "zookeeper://zoo.example:2181/here" }, "coordination"],
  ["a webhook", { alarms: hook("http://hooks.example/x") }, "alarms.channels.ops"],
  ["a chat", { alarms: { channels: { chat: { slack: "http://hooks.example/x" } } } }, "alarms.channels.chat"],
  [
    "a service of alerts",
    { alarms: { channels: { duty: { pagerduty: "secret", url: "http://duty.example" } } } },
    "alarms.channels.duty",
  ],
  ["a ping", { alarms: { ping: { url: "http://m.example/x" } } }, "alarms.ping.url"],
  ["a webhook of events", { webhooks: { billing: { url: "http://b.example/x" } } }, "webhooks.billing"],
  [
    "a mail server that may do without",
    {
      alarms: {
        channels: { mail: { smtp: "smtp://mx.example", from: "a@b.example", to: "c@d.example", requireTls: false } },
      },
    },
    "alarms.channels.mail",
  ],
])("a connection without TLS is refused if TLS is required: %s", (_, options, path) => {
  const given = { store: "embedded", ...options };
  expect(() => settingsOf({ ...given, requireTls: true })).toThrow(
    expect.objectContaining({ code: "OPTION_INVALID", path, message: expect.not.stringContaining("secret") }),
  );
  expect(() => settingsOf(given)).not.toThrow();
});

it.each<[string, object]>([
  ["by TLS", { store: "postgres://db.example/app?sslmode=verify-full", coordination: "rediss://cache.example" }],
  ["ZooKeeper by TLS", { store: "embedded", coordination: "zookeepers://zoo.example:2182" }],
  ["this machine", { store: "postgres://127.0.0.1/app", coordination: "redis://localhost:6379" }],
  ["a webhook by TLS", { store: "embedded", alarms: hook("https://hooks.example/x") }],
])("is accepted if TLS is required: %s", (_, options) => {
  expect(() => settingsOf({ ...options, requireTls: true })).not.toThrow();
});
