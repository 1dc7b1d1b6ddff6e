/**
 * One server in place of all chat and on-call services that alarms can be sent to. It checks each request against the service's published
 * format, and refuses unknown fields, texts that are too long, wrong signatures and wrong keys in the same way as the service.
 */
import { createHmac } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { z } from "zod";
import type { ChannelOptions } from "../../src/settings/alarms/channels.ts";

export const services = ["slack", "teams", "dingtalk", "feishu", "wecom", "telegram", "pagerduty", "opsgenie"] as const;
export type Service = (typeof services)[number];

/** The secrets of the channels; no error, response or log line may contain one. */
export const keys = {
  slack: "canary-slack",
  teams: "canary-teams",
  dingtalk: "canary-dingtalk",
  dingtalkSecret: "SECcanary-dingtalk-secret",
  feishu: "canary-feishu",
  feishuSecret: "canary-feishu-secret",
  wecom: "canary-wecom",
  telegram: "110201543:canary-telegram",
  pagerduty: "canarypagerdutycanarypagerduty00",
  opsgenie: "canary-opsgenie",
} as const;

const link = z.url({ protocol: /^https?$/ }).max(3_000);
const bytes = (most: number) =>
  z
    .string()
    .min(1)
    .refine((text) => Buffer.byteLength(text) <= most, `more than ${most} bytes`);

const slackText = (most: number) =>
  z.strictObject({ type: z.literal("plain_text"), text: z.string().min(1).max(most), emoji: z.boolean().optional() });
const slack = z.strictObject({
  // The fallback text is parsed as markup, in which a mention or a link begins with "<".
  text: z
    .string()
    .min(1)
    .max(40_000)
    .regex(/^[^<>]*$/),
  blocks: z
    .array(
      z.discriminatedUnion("type", [
        z.strictObject({ type: z.literal("header"), text: slackText(150) }),
        z.strictObject({ type: z.literal("section"), text: slackText(3_000) }),
        z.strictObject({
          type: z.literal("actions"),
          elements: z
            .array(
              z.strictObject({
                type: z.literal("button"),
                action_id: z.string().min(1).max(255),
                text: slackText(75),
                url: link,
              }),
            )
            .min(1)
            .max(25),
        }),
      ]),
    )
    .min(1)
    .max(50),
});

const textRun = z.strictObject({
  type: z.literal("TextRun"),
  text: z.string().min(1),
  weight: z.enum(["lighter", "default", "bolder"]).optional(),
  size: z.enum(["small", "default", "medium", "large", "extraLarge"]).optional(),
  color: z.enum(["default", "dark", "light", "accent", "good", "warning", "attention"]).optional(),
});
const teams = z.strictObject({
  type: z.literal("message"),
  attachments: z
    .array(
      z.strictObject({
        contentType: z.literal("application/vnd.microsoft.card.adaptive"),
        contentUrl: z.null(),
        content: z.strictObject({
          $schema: z.literal("http://adaptivecards.io/schemas/adaptive-card.json"),
          type: z.literal("AdaptiveCard"),
          version: z.enum(["1.2", "1.3", "1.4", "1.5"]),
          fallbackText: z.string(),
          msteams: z.strictObject({ width: z.literal("Full") }),
          body: z
            .array(
              z.strictObject({
                type: z.literal("RichTextBlock"),
                spacing: z.enum(["none", "small", "default", "medium", "large", "extraLarge", "padding"]),
                inlines: z.array(textRun).min(1),
              }),
            )
            .min(1),
          actions: z
            .array(z.strictObject({ type: z.literal("Action.OpenUrl"), title: z.string().min(1), url: link }))
            .max(6),
        }),
      }),
    )
    .length(1),
});

const dingtalkCard = { title: z.string().min(1), text: z.string().min(1) };
const dingtalk = z.discriminatedUnion("msgtype", [
  z.strictObject({ msgtype: z.literal("markdown"), markdown: z.strictObject(dingtalkCard) }),
  z.strictObject({
    msgtype: z.literal("actionCard"),
    actionCard: z.union([
      z.strictObject({ ...dingtalkCard, singleTitle: z.string().min(1), singleURL: link }),
      z.strictObject({
        ...dingtalkCard,
        btnOrientation: z.enum(["0", "1"]),
        btns: z.array(z.strictObject({ title: z.string().min(1), actionURL: link })).min(2),
      }),
    ]),
  }),
]);

const feishuText = z.strictObject({ tag: z.literal("plain_text"), content: z.string().min(1) });
const feishu = z.strictObject({
  timestamp: z.string().regex(/^\d{10}$/),
  sign: z.string(),
  msg_type: z.literal("interactive"),
  card: z.strictObject({
    config: z.strictObject({ wide_screen_mode: z.boolean() }),
    header: z.strictObject({ title: feishuText, template: z.enum(["blue", "green", "orange", "red"]) }),
    elements: z.array(
      z.discriminatedUnion("tag", [
        z.strictObject({ tag: z.literal("div"), text: feishuText }),
        z.strictObject({
          tag: z.literal("action"),
          actions: z
            .array(
              z.strictObject({
                tag: z.literal("button"),
                type: z.enum(["default", "primary", "danger"]),
                text: feishuText,
                url: link,
              }),
            )
            .min(1),
        }),
      ]),
    ),
  }),
});

const wecom = z.strictObject({
  msgtype: z.literal("markdown"),
  markdown: z.strictObject({ content: bytes(4_096) }),
});

const telegram = z.strictObject({
  chat_id: z.union([z.int(), z.string().regex(/^(?:-?\d+|@\w+)$/)]),
  message_thread_id: z.int().positive().optional(),
  text: z.string().min(1).max(4_096),
  entities: z.array(z.strictObject({ type: z.literal("bold"), offset: z.int().min(0), length: z.int().positive() })),
  link_preview_options: z.strictObject({ is_disabled: z.boolean() }),
  reply_markup: z
    .strictObject({
      inline_keyboard: z.array(z.array(z.strictObject({ text: z.string().min(1), url: link })).min(1)).min(1),
    })
    .optional(),
});

const dedupKey = z.string().min(1).max(255);
const pagerduty = z.discriminatedUnion("event_action", [
  z.strictObject({ event_action: z.literal("resolve"), routing_key: z.string().length(32), dedup_key: dedupKey }),
  z.strictObject({
    event_action: z.literal("trigger"),
    routing_key: z.string().length(32),
    dedup_key: dedupKey,
    client: z.string(),
    client_url: link.optional(),
    links: z.array(z.strictObject({ href: link, text: z.string() })),
    payload: z.strictObject({
      summary: z.string().min(1).max(1_024),
      source: z.string().min(1),
      severity: z.enum(["critical", "error", "warning", "info"]),
      timestamp: z.iso.datetime(),
      component: z.string(),
      class: z.string(),
      custom_details: z.record(z.string(), z.unknown()),
    }),
  }),
]);

const opsgenieAlert = z.strictObject({
  message: z.string().min(1).max(130),
  alias: z.string().min(1).max(512),
  description: z.string().max(15_000),
  source: z.string().max(100),
  priority: z.enum(["P1", "P2", "P3", "P4", "P5"]),
  tags: z.array(z.string().max(50)).max(20),
  details: z.record(z.string(), z.string()),
});
const opsgenieClose = z.strictObject({ source: z.string().max(100), note: z.string().max(25_000) });

export interface Taken {
  service: Service;
  path: string;
  body: Record<string, unknown>;
}

interface Said {
  status: number;
  body: unknown;
  headers?: Record<string, string>;
}

interface Asked {
  url: URL;
  request: IncomingMessage;
  body: unknown;
  raw: string;
}

interface Contract {
  is: (url: URL) => boolean;
  /** Returns what is wrong with the request; null: nothing. */
  wrong: (asked: Asked) => string | null;
  taken: Said;
  /** Returns the service's response to a wrong request. */
  refused: (why: string) => Said;
}

const against = (schema: z.ZodType, body: unknown): string | null => {
  const { error } = schema.safeParse(body);
  return error ? z.prettifyError(error) : null;
};
const hmac = (key: string, message: string) => createHmac("sha256", key).update(message).digest("base64");
const isRecent = (ms: number) => Math.abs(Date.now() - ms) < 3_600_000;

function dingtalkSigned({ searchParams }: URL): string | null {
  const timestamp = searchParams.get("timestamp") ?? "";
  if (!/^\d{13}$/.test(timestamp) || !isRecent(Number(timestamp))) return "invalid timestamp";
  return searchParams.get("sign") === hmac(keys.dingtalkSecret, `${timestamp}\n${keys.dingtalkSecret}`)
    ? null
    : "sign not match";
}

function feishuSigned(body: unknown): string | null {
  const { timestamp, sign } = body as { timestamp: string; sign: string };
  return sign === hmac(`${timestamp}\n${keys.feishuSecret}`, "") && isRecent(Number(timestamp) * 1_000)
    ? null
    : "sign match fail or timestamp is not within one hour from current time";
}

const tooLong = (raw: string, most: number) => (Buffer.byteLength(raw) > most ? `more than ${most} bytes` : null);
const keyIs = (url: URL, name: string, key: string) => (url.searchParams.get(name) === key ? null : "invalid key");

const contracts: Record<Service, Contract> = {
  slack: {
    is: ({ pathname }) => pathname.startsWith("/services/"),
    wrong: ({ url, body }) => (url.pathname === `/services/T0/B0/${keys.slack}` ? against(slack, body) : "no_service"),
    taken: { status: 200, body: "ok" },
    refused: (why) => ({
      status: why === "no_service" ? 404 : 400,
      body: why === "no_service" ? why : "invalid_blocks",
    }),
  },
  teams: {
    is: ({ pathname }) => pathname.startsWith("/workflows/"),
    wrong: ({ url, body, raw }) => keyIs(url, "sig", keys.teams) ?? tooLong(raw, 28 * 1_024) ?? against(teams, body),
    taken: { status: 202, body: "" },
    refused: (why) => ({ status: 400, body: { error: { code: "InvalidRequestContent", message: why } } }),
  },
  dingtalk: {
    is: ({ pathname }) => pathname === "/robot/send",
    wrong: ({ url, body, raw }) =>
      keyIs(url, "access_token", keys.dingtalk) ??
      dingtalkSigned(url) ??
      tooLong(raw, 20_000) ??
      against(dingtalk, body),
    taken: { status: 200, body: { errcode: 0, errmsg: "ok" } },
    refused: (why) => ({ status: 200, body: { errcode: 310000, errmsg: why } }),
  },
  feishu: {
    is: ({ pathname }) => pathname.startsWith("/open-apis/bot/v2/hook/"),
    wrong: ({ url, body, raw }) =>
      (url.pathname.endsWith(`/${keys.feishu}`) ? null : "invalid key") ??
      against(feishu, body) ??
      feishuSigned(body) ??
      tooLong(raw, 20 * 1_024),
    taken: { status: 200, body: { code: 0, msg: "success", data: {} } },
    refused: (why) => ({ status: 200, body: { code: 19021, msg: why } }),
  },
  wecom: {
    is: ({ pathname }) => pathname === "/cgi-bin/webhook/send",
    wrong: ({ url, body }) => keyIs(url, "key", keys.wecom) ?? against(wecom, body),
    taken: { status: 200, body: { errcode: 0, errmsg: "ok" } },
    refused: (why) => ({ status: 200, body: { errcode: 93000, errmsg: why } }),
  },
  telegram: {
    is: ({ pathname }) => pathname.startsWith("/bot"),
    wrong: ({ url, body }) =>
      url.pathname === `/bot${keys.telegram}/sendMessage` ? against(telegram, body) : "Not Found",
    taken: { status: 200, body: { ok: true, result: { message_id: 1 } } },
    refused: (why) => ({ status: 400, body: { ok: false, error_code: 400, description: `Bad Request: ${why}` } }),
  },
  pagerduty: {
    is: ({ pathname }) => pathname === "/v2/enqueue",
    wrong: ({ body, raw }) =>
      ((body as { routing_key?: unknown }).routing_key === keys.pagerduty ? null : "invalid routing key") ??
      tooLong(raw, 512 * 1_024) ??
      against(pagerduty, body),
    taken: { status: 202, body: { status: "success", message: "Event processed", dedup_key: "x" } },
    refused: (why) => ({
      status: 400,
      body: { status: "invalid event", message: "Event object is invalid", errors: [why] },
    }),
  },
  opsgenie: {
    is: ({ pathname }) => pathname.startsWith("/v2/alerts"),
    wrong({ url, request, body }) {
      if (request.headers.authorization !== `GenieKey ${keys.opsgenie}`) return "Could not authenticate";
      if (url.pathname === "/v2/alerts") return against(opsgenieAlert, body);
      const isClose = /^\/v2\/alerts\/[^/]+\/close$/.test(url.pathname);
      return isClose && url.search === "?identifierType=alias" ? against(opsgenieClose, body) : "no such path";
    },
    taken: { status: 202, body: { result: "Request will be processed", took: 0.1, requestId: "x" } },
    refused: (why) => ({ status: 422, body: { message: why, took: 0.1, requestId: "x" } }),
  },
};

export class ServiceDouble {
  readonly taken: Taken[] = [];
  /** For each refused request: its service, and what was wrong. */
  readonly wrong: string[] = [];
  /** Responses that a test has set, in place of the next usual responses of a service. */
  readonly #instead: { service: Service; said: Said }[] = [];
  #origin = "";
  readonly #server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => this.#answer(request, response, Buffer.concat(chunks).toString()));
  });

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    this.#origin = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  close(): Promise<void> {
    this.#server.closeAllConnections();
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }

  /** A channel of each service, in the form in which an alarms file has it. */
  channels(): Record<Service, ChannelOptions> {
    const at = this.#origin;
    return {
      slack: { slack: `${at}/services/T0/B0/${keys.slack}` },
      teams: { teams: `${at}/workflows/w1/triggers/manual/paths/invoke?sig=${keys.teams}` },
      dingtalk: { dingtalk: `${at}/robot/send?access_token=${keys.dingtalk}`, secret: keys.dingtalkSecret },
      feishu: { feishu: `${at}/open-apis/bot/v2/hook/${keys.feishu}`, secret: keys.feishuSecret },
      wecom: { wecom: `${at}/cgi-bin/webhook/send?key=${keys.wecom}` },
      telegram: { telegram: keys.telegram, chat: -1001, url: at },
      pagerduty: { pagerduty: keys.pagerduty, url: at },
      opsgenie: { opsgenie: keys.opsgenie, url: at },
    };
  }

  /** Sets the response to the next request to the service that is not refused. */
  once(service: Service, said: Said): void {
    this.#instead.push({ service, said });
  }

  of(service: Service): Taken[] {
    return this.taken.filter((one) => one.service === service);
  }

  #answer(request: IncomingMessage, response: ServerResponse, raw: string): void {
    const url = new URL(request.url ?? "/", this.#origin);
    const service = services.find((one) => contracts[one].is(url));
    const { status, body, headers = {} } = service ? this.#said(service, url, request, raw) : { status: 404, body: "" };
    const text = typeof body === "string" ? body : JSON.stringify(body);
    response.writeHead(status, {
      "content-type": typeof body === "string" ? "text/plain" : "application/json",
      ...headers,
    });
    response.end(text);
  }

  #said(
    service: Service,
    url: URL,
    request: IncomingMessage,
    raw: string,
  ): Said & { headers?: Record<string, string> } {
    const contract = contracts[service];
    const isJson = request.method === "POST" && /^application\/json\b/.test(request.headers["content-type"] ?? "");
    const body: unknown = isJson ? JSON.parse(raw) : undefined;
    const wrong = isJson ? contract.wrong({ url, request, body, raw }) : "not JSON by POST";
    if (wrong !== null) {
      this.wrong.push(`${service}: ${wrong}`);
      return contract.refused(wrong);
    }
    const place = this.#instead.findIndex((one) => one.service === service);
    const [instead] = place < 0 ? [] : this.#instead.splice(place, 1);
    if (instead) return instead.said;
    this.taken.push({ service, path: url.pathname, body: body as Record<string, unknown> });
    return contract.taken;
  }
}
