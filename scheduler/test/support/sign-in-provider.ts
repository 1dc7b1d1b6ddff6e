import { createSign, generateKeyPairSync, type KeyObject } from "node:crypto";
import { createServer, type RequestListener, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import Provider from "oidc-provider";

interface IdToken {
  header: Record<string, unknown>;
  claims: Record<string, unknown>;
}

const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
const decoded = (part = "") => JSON.parse(Buffer.from(part, "base64url").toString()) as Record<string, unknown>;
const newKey = () => generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey;

/** A key that is not the provider's, for forged tokens. */
export const foreignKey = newKey();

export const unsigned = ({ header, claims }: IdToken) => `${encoded({ ...header, alg: "none" })}.${encoded(claims)}.`;

export function signed({ header, claims }: IdToken, key: KeyObject): string {
  const text = `${encoded(header)}.${encoded(claims)}`;
  return `${text}.${createSign("RSA-SHA256").update(text).sign(key).toString("base64url")}`;
}

/** A real OpenID Connect provider on this machine. It accepts any password, and returns the claims that a test sets for each user. */
export class SignInProvider {
  readonly clientId = "carillon";
  readonly clientSecret = "a secret between the two of them";
  readonly groups = new Map<string, string[]>();
  /** If true, the provider's token endpoint fails. */
  broken = false;
  /** Creates a forged token in place of the real one; null: the real token is returned. */
  forge: ((token: IdToken & { signature: string }) => string) | null = null;
  readonly key = newKey();
  #answer: RequestListener = (_, response) => void response.writeHead(503).end();
  readonly #server = createServer((request, response) => this.#answer(request, response));

  get issuer(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Starts to listen. Until `serve` registers the client, the provider answers with status 503. */
  async open(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return this;
  }

  serve(redirectUri: string): void {
    const provider = new Provider(this.issuer, {
      clients: [
        {
          client_id: this.clientId,
          client_secret: this.clientSecret,
          redirect_uris: [redirectUri],
          grant_types: ["authorization_code"],
          response_types: ["code"],
        },
      ],
      cookies: { keys: ["of this test"] },
      jwks: { keys: [{ ...this.key.export({ format: "jwk" }), kid: "one", use: "sig", alg: "RS256" } as never] },
      // The values are set explicitly, because the library warns about default values.
      ttl: { Interaction: 600, Session: 600, Grant: 600, AccessToken: 600, IdToken: 600, AuthorizationCode: 60 },
      pkce: { required: () => true },
      claims: { openid: ["sub"], profile: ["preferred_username", "groups"], email: ["email"] },
      findAccount: (_, id) => ({
        accountId: id,
        claims: async () => ({ sub: `id-of-${id}`, preferred_username: id, groups: this.groups.get(id) ?? [] }),
      }),
    });
    const answer = provider.callback();
    this.#answer = (request, response) => {
      if (request.url === "/token" && this.broken) return void response.writeHead(503).end();
      if (request.url === "/token" && this.forge) this.#forging(response, this.forge);
      return void answer(request, response);
    };
  }

  #forging(response: ServerResponse, forge: NonNullable<SignInProvider["forge"]>): void {
    const end = response.end.bind(response) as (text: string) => ServerResponse;
    response.end = ((text: string) => {
      const given = JSON.parse(text) as { id_token: string };
      const [header, claims, signature = ""] = given.id_token.split(".");
      const forged = { ...given, id_token: forge({ header: decoded(header), claims: decoded(claims), signature }) };
      response.setHeader("content-length", Buffer.byteLength(JSON.stringify(forged)));
      return end(JSON.stringify(forged));
    }) as ServerResponse["end"];
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

interface Cookie {
  name: string;
  value: string;
  path: string;
}

/** A minimal browser for the sign-in flow: it keeps cookies by origin and path. `go` makes one request and follows no redirect. */
export class SmallBrowser {
  readonly #cookies = new Map<string, Cookie[]>();

  async go(url: string, form?: Record<string, string>): Promise<Response> {
    const { origin, pathname } = new URL(url);
    const own = (this.#cookies.get(origin) ?? []).filter(({ path }) => pathname.startsWith(path));
    const response = await fetch(url, {
      redirect: "manual",
      headers: { cookie: own.map(({ name, value }) => `${name}=${value}`).join("; ") },
      ...(form ? { method: "POST", body: new URLSearchParams(form) } : {}),
    });
    for (const text of response.headers.getSetCookie()) this.#keep(origin, text);
    return response;
  }

  cookie(origin: string, name: string): string | undefined {
    return this.#cookies.get(origin)?.find((one) => one.name === name)?.value;
  }

  setCookie(origin: string, name: string, value: string): void {
    this.#keep(origin, `${name}=${value}; path=/`);
  }

  #keep(origin: string, text: string): void {
    const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(text) ?? [];
    const path = /; ?path=([^;]+)/i.exec(text)?.[1] ?? "/";
    const others = (this.#cookies.get(origin) ?? []).filter((one) => one.name !== name || one.path !== path);
    this.#cookies.set(origin, value === "" ? others : [...others, { name, value, path }]);
  }

  /** Follows the redirects from the server's page through the provider's forms. @returns the URL to which the provider redirects back */
  async throughProvider(begin: string, user: string): Promise<string> {
    let at = begin;
    for (let steps = 0; steps < 12; steps++) {
      const { pathname } = new URL(at);
      const form = pathname.startsWith("/interaction/") ? await this.#formOf(at, user) : undefined;
      const response = await this.go(at, form);
      const to = response.headers.get("location");
      if (to === null) throw new Error(`${at} answered ${response.status}: ${(await response.text()).slice(0, 300)}`);
      at = new URL(to, at).href;
      if (new URL(at).pathname === "/v1/sign-in/provided") return at;
    }
    throw new Error(`still at ${at}`);
  }

  async #formOf(url: string, user: string): Promise<Record<string, string>> {
    const page = await (await this.go(url)).text();
    return /value="consent"/.test(page) ? { prompt: "consent" } : { prompt: "login", login: user, password: "any" };
  }
}
