import { randomBytes } from "node:crypto";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import type { Role, Scope } from "../../src/access/access.ts";
import { hashOfSecret, makeSecret, tokenText } from "../../src/access/worker-key.ts";
import { type Client, client } from "../../src/api/client.ts";
import { type RouteId, shapeOf } from "../../src/api/contract.ts";
import { describeApi } from "../../src/api/openapi.ts";
import { RemoteStage } from "./remote-stage.ts";

type Answered = { content?: Record<string, { schema: object }> };

interface Described {
  paths: Record<string, Record<string, { responses: Record<string, Answered & { $ref?: string }> }>>;
  components: { schemas: Record<string, object>; responses: Record<string, Answered> };
}

/** The response to a request; its body has been validated if the OpenAPI document has the request's path. */
export interface Asked {
  status: number;
  // biome-ignore lint/suspicious/noExplicitAny: a test looks at whatever the answer has.
  body: any;
  headers: Headers;
}

export interface AskOptions {
  token?: string;
  headers?: Record<string, string>;
  body?: unknown;
}

/** A server with the API, with users of every role, on a new schema. */
export class ApiStage extends RemoteStage {
  readonly tokens = {} as Record<Role, string>;
  readonly #validators = new Map<string, ValidateFunction>();
  readonly #ajv = new Ajv2020({ strict: false, validateFormats: false });
  readonly #page = describeApi("test") as Described;

  async open(options: Parameters<RemoteStage["serve"]>[0] = {}): Promise<this> {
    await this.serve(options);
    for (const role of ["viewer", "operator", "editor", "admin"] as const) this.tokens[role] = await this.token(role);
    this.#ajv.addSchema({ $id: "page", ...this.#page });
    return this;
  }

  /** Creates a user with this role, everywhere or in some namespaces only. @returns a token with the same role */
  async token(
    role: Role,
    {
      scopes = null,
      expiresMs = 9e12,
      where,
      namespaces = null,
    }: { scopes?: Scope[] | null; expiresMs?: number; where?: string[]; namespaces?: string[] | null } = {},
  ) {
    const change = { author: "test", reason: "", nowMs: 1 };
    const name = `${role}-${randomBytes(3).toString("hex")}`;
    const grants = (where ?? []).map((namespace) => ({ namespace, role }));
    const given = { name, hash: "none", role: where ? null : role, grants };
    const user = await this.store.access.createUser(given, change);
    const secret = makeSecret();
    const token = {
      userId: user.userId,
      name: "test",
      hash: hashOfSecret(secret),
      role,
      scopes,
      namespaces,
      expiresMs,
    };
    return tokenText((await this.store.access.createToken(token, change)).tokenId, secret);
  }

  client(role: Role = "admin", server = this.server): Client {
    return this.clientOf(this.tokens[role], server);
  }

  clientOf(token: string, server = this.server): Client {
    return client({ server: this.urlOf(server), token, fetch: this.#checking });
  }

  /** Sends a request without the client, for inputs that the client would refuse. */
  async ask(
    method: string,
    path: string,
    { token, headers = {}, body }: AskOptions = {},
    server = this.server,
  ): Promise<Asked> {
    const response = await this.#checking(`${this.urlOf(server)}${path}`, {
      method,
      headers: {
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, headers: response.headers, body: bodyOf(response, text) };
  }

  /** A `fetch` that throws if a response, other than a stream of events, does not match the OpenAPI document. */
  readonly #checking: typeof fetch = async (input, init) => {
    const response = await fetch(input, init);
    if (/event-stream/.test(response.headers.get("content-type") ?? "")) return response;
    const text = await response.clone().text();
    if (text !== "")
      this.#check(init?.method ?? "GET", new URL(String(input)).pathname, response, bodyOf(response, text));
    return response;
  };

  #check(method: string, path: string, { status, headers }: Response, body: unknown): void {
    const template = Object.keys(this.#page.paths).find(
      (one) =>
        new RegExp(`^${one.replace(/\{\w+\}/g, "[^/]+")}$`).test(path) && this.#page.paths[one]?.[method.toLowerCase()],
    );
    if (template === undefined) return;
    const responses = this.#page.paths[template]?.[method.toLowerCase()]?.responses ?? {};
    const type = headers.get("content-type")?.split(";")[0] ?? "";
    const described = responses[status];
    const answer = described?.$ref
      ? this.#page.components.responses[described.$ref.split("/").at(-1) ?? ""]
      : described;
    const schema = answer?.content?.[type]?.schema;
    if (!schema) throw new Error(`${method} ${path} answered ${status} ${type}, which the page does not have`);
    const key = `${method} ${template} ${status}`;
    let validate = this.#validators.get(key);
    if (!validate) {
      const pointed = JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"page#/'));
      validate = this.#ajv.compile(pointed);
      this.#validators.set(key, validate);
    }
    if (!validate(body))
      throw new Error(`${key}: ${this.#ajv.errorsText(validate.errors)}: ${JSON.stringify(body).slice(0, 2_000)}`);
  }
}

/** Returns the body of a response: the text itself of a calendar, otherwise what the JSON says; undefined if it is empty. */
const bodyOf = ({ headers }: Response, text: string) =>
  text === "" || headers.get("content-type")?.startsWith("text/calendar") ? text || undefined : JSON.parse(text);

/** Returns the path of a route with sample values for its parameters. */
export const pathOf = (routeId: RouteId): string =>
  shapeOf(routeId).path.replace(/\{(\w+)\}/g, (_, name: string) =>
    /^(?:run|operation|message|silence)$/.test(name) ? "1" : "none",
  );
