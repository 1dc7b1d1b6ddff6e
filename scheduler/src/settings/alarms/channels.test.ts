import { describe, expect, it } from "vitest";
import { channelKindNames } from "../../alarms/channel-kinds.ts";
import { alarmSettings } from "./alarms.ts";
import { type ChannelOptions, checkChannel, isSigned, kindOf, postsTo, receiverOf, secretsOf } from "./channels.ts";

const all: [kind: string, channel: ChannelOptions, to: string, secrets: string[]][] = [
  ["webhook", { webhook: "https://h.example/T0/key?a=b", secret: "s3cret" }, "h.example", ["s3cret", "/T0/key"]],
  [
    "mail",
    { smtp: "smtp://me:p%2Fw@m.example", from: "a@b.example", to: ["c@d.example", "e@f.example"] },
    "c@d.example, e@f.example",
    ["p/w", "p%2Fw", "cC93", "AG1lAHAvdw"],
  ],
  ["slack", { slack: "https://hooks.slack.com/services/T/B/key" }, "hooks.slack.com", ["/services/T/B/key"]],
  ["teams", { teams: "https://x.logic.azure.com/w?sig=key" }, "x.logic.azure.com", ["sig=key"]],
  [
    "dingtalk",
    { dingtalk: "https://oapi.dingtalk.com/robot/send?access_token=key", secret: "SECx" },
    "oapi.dingtalk.com",
    ["SECx", "access_token=key"],
  ],
  [
    "feishu",
    { feishu: "https://open.larksuite.com/open-apis/bot/v2/hook/key", secret: "x" },
    "open.larksuite.com",
    ["/open-apis/bot/v2/hook/key"],
  ],
  ["wecom", { wecom: "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=key" }, "qyapi.weixin.qq.com", ["key=key"]],
  ["telegram", { telegram: "1:key", chat: -1001, language: "zh" }, "api.telegram.org, -1001", ["1:key"]],
  ["pagerduty", { pagerduty: "R0key", url: "https://events.eu.pagerduty.com" }, "events.eu.pagerduty.com", ["R0key"]],
  ["opsgenie", { opsgenie: "key-1", zone: "Asia/Shanghai" }, "api.opsgenie.com", ["key-1"]],
  ["command", { command: ["/usr/local/bin/tell", "--token=x"] }, "/usr/local/bin/tell", ["--token=x"]],
];

describe("a channel", () => {
  it.each(all)("of the kind %s shows its receiver, and not its secrets", (kind, channel, to, secrets) => {
    expect(() => checkChannel("ops", channel)).not.toThrow();
    expect([kindOf(channel), receiverOf(channel)]).toEqual([kind, to]);
    expect(secretsOf(channel)).toEqual(expect.arrayContaining(secrets));
    for (const secret of secrets) expect(receiverOf(channel)).not.toContain(secret);
    expect(postsTo(channel)?.host ?? null).toBe(kind === "mail" || kind === "command" ? null : to.split(",")[0]);
    expect(isSigned(channel)).toBe(["webhook", "dingtalk", "feishu"].includes(kind));
  });

  it("has one of the documented kinds", () => {
    expect(all.map(([kind]) => kind)).toEqual([...channelKindNames]);
  });

  const slack = "https://hooks.slack.com/services/T/B/key";
  it.each<[string, unknown, path: string, message: string]>([
    [
      "an unknown kind",
      { slak: slack },
      "",
      'is of no kind: it has none of webhook, smtp, slack, teams, dingtalk, feishu, wecom, telegram, pagerduty, opsgenie, command; did you mean "slack"?',
    ],
    [
      "a misspelt option",
      { dingtalk: slack, secrt: "x" },
      ".secrt",
      'is no option of a channel of the kind dingtalk; did you mean "secret"?',
    ],
    ["an option of another kind", { slack, secret: "x" }, ".secret", "is no option of a channel of the kind slack"],
    ["two kinds", { slack, teams: slack }, "", "is of two kinds: slack and teams"],
    ["no chat", { telegram: "1:key" }, ".chat", "must be a chat's number or @name"],
    ["a chat that is none", { telegram: "1:key", chat: "the ops" }, ".chat", "must be a chat's number or @name"],
    ["no URL", { feishu: "open.feishu.cn/x" }, ".feishu", "must be an http:// or https:// URL"],
    [
      "a URL with a password",
      { wecom: "https://me:pw@h.example/x" },
      ".wecom",
      "must be a URL without a user or password",
    ],
    ["an empty key", { pagerduty: "" }, ".pagerduty", "must be a text"],
    [
      "a program without a path",
      { command: ["tell"] },
      ".command",
      "must be a list of texts that begins with the absolute path of a program",
    ],
    [
      "a command line",
      { command: "/usr/bin/tell --all" },
      ".command",
      "must be a list of texts that begins with the absolute path of a program",
    ],
    ["another language", { slack, language: "de" }, ".language", 'must be "en" or "zh"'],
    ["an address that is none", { slack, allow: [1] }, ".allow", "must be a list of texts"],
  ])("is refused with its option path: %s", (_, channel, path, message) => {
    expect(() => checkChannel("ops", channel as object)).toThrow(
      expect.objectContaining({
        code: "OPTION_INVALID",
        path: `alarms.channels.ops${path}`,
        message: `alarms.channels.ops${path} ${message}`,
      }),
    );
  });

  it("must have a known zone, and rules must name existing channels", () => {
    const alarms = (more: object) => () => alarmSettings({ channels: { chat: { slack } }, ...more });
    expect(alarms({ channels: { chat: { slack, zone: "Asia/Shangai" } } })).toThrow(
      expect.objectContaining({ code: "ZONE_UNKNOWN", path: "alarms.channels.chat.zone" }),
    );
    expect(alarms({ zone: "Mars" })).toThrow(expect.objectContaining({ code: "ZONE_UNKNOWN", path: "alarms.zone" }));
    expect(alarms({ language: "zn" })).toThrow(expect.objectContaining({ path: "alarms.language" }));
    expect(alarms({ console: "carillon.example" })).toThrow(expect.objectContaining({ path: "alarms.console" }));
    expect(alarms({ rules: { failed: ["chta"] } })).toThrow('there is no "chta"; did you mean "chat"?');
    expect(alarms({ language: "zh", zone: "asia/shanghai", console: "https://c.example/at" })()).toMatchObject({
      language: "zh",
      zone: "Asia/Shanghai",
      console: "https://c.example/at",
    });
  });
});
