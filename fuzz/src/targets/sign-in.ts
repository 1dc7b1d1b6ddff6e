/** Fuzzes a server whose identity provider returns arbitrary data, and a server that receives arbitrary bytes. */
import { createSign, generateKeyPairSync } from "node:crypto";
import { createServer, type Server } from "node:http";
import { type AddressInfo, connect } from "node:net";
import fc from "fast-check";
import { hold } from "../expected.ts";
import { oddJson, spoiltTexts, spoiltValues } from "../mutation.ts";
import { ask, judge, openServer, stage } from "../server-stage.ts";
import { target } from "../target.ts";

const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2_048 });
const jwk = { ...publicKey.export({ format: "jwk" }), kid: "k", alg: "RS256", use: "sig" };
const base64 = (value: unknown) => Buffer.from(JSON.stringify(value) ?? "").toString("base64url");

function signed(claims: unknown, header: unknown = { alg: "RS256", kid: "k" }): string {
  const text = `${base64(header)}.${base64(claims)}`;
  return `${text}.${createSign("RSA-SHA256").update(text).sign(privateKey, "base64url")}`;
}

interface Said {
  readonly claims: unknown;
  readonly header: unknown;
  readonly token: unknown;
  readonly person: unknown;
  readonly text: string | null;
}

let provider: Server | undefined;
let says: Said | undefined;
const issuer = () => `http://127.0.0.1:${((provider as Server).address() as AddressInfo).port}`;
const clientId = "carillon";
const [state, nonce, verifier] = ["s", "n", "v"].map((letter) => letter.repeat(43)) as [string, string, string];

async function openProvider(): Promise<() => Promise<void>> {
  const own = createServer((request, response) => {
    const tell = (value: unknown, type = "application/json") => {
      response.writeHead(200, { "content-type": type });
      response.end(typeof value === "string" ? value : (JSON.stringify(value) ?? ""));
    };
    request.resume();
    const { pathname } = new URL(request.url ?? "/", issuer());
    if (pathname.startsWith("/.well-known"))
      tell({
        issuer: issuer(),
        authorization_endpoint: `${issuer()}/a`,
        token_endpoint: `${issuer()}/t`,
        jwks_uri: `${issuer()}/k`,
        userinfo_endpoint: `${issuer()}/u`,
        response_types_supported: ["code"],
        subject_types_supported: ["public"],
        id_token_signing_alg_values_supported: ["RS256"],
      });
    else if (pathname === "/k") tell({ keys: [jwk] });
    else if (pathname === "/u") tell(says?.person);
    else tell(says?.text ?? says?.token);
  });
  await new Promise<void>((resolve) => own.listen(0, "127.0.0.1", resolve));
  provider = own;
  const close = await openServer({
    provider: {
      issuer: issuer(),
      clientId,
      clientSecret: "s",
      url: "http://127.0.0.1:1",
      name: "name",
      rules: [
        { claim: "groups", has: "ops", role: "operator" },
        { claim: "email", role: "viewer", in: "billing" },
      ],
    },
  });
  return async () => {
    await close();
    own.closeAllConnections();
    await new Promise((resolve) => own.close(resolve));
  };
}

const people = [
  { sub: "7", name: "ann", groups: ["ops"], email: "a@b.c" },
  { sub: "7", name: "ann" },
  { sub: "8", name: "x".repeat(120), groups: "ops" },
  { sub: "9\0", name: "a\0", groups: ["ops"] },
];
const goodClaims = () => ({
  iss: issuer(),
  aud: clientId,
  sub: "7",
  nonce,
  iat: Math.floor(Date.now() / 1_000),
  exp: 4_000_000_000,
  name: "ann",
  groups: ["ops"],
});
const claimNames = ["sub", "name", "groups", "iss", "aud", "nonce", "exp", "iat", "email"];

const lines = [
  "GET /v1/tasks?limit=1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer TOKEN\r\nConnection: close\r\n\r\n",
  'POST /v1/sign-in HTTP/1.1\r\nHost: x\r\nOrigin: http://x\r\nContent-Type: application/json\r\nContent-Length: 28\r\nConnection: close\r\n\r\n{"name":"a","password":"bc"}',
  'POST /v1/worker/poll HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Encoding: gzip\r\nConnection: close\r\n\r\n5\r\n{"a":\r\n1\r\n}\r\n0\r\n\r\n',
  "GET http://[x/v1/sign-in/provided?state=STATE HTTP/1.1\r\nHost: x\r\nCookie: carillon-attempt=STATE.STATE.STATE\r\nConnection: close\r\n\r\n",
  "OPTIONS /v1/tasks/%2e%2e%2f HTTP/1.0\r\nOrigin: null\r\n\r\n",
].map((text) => text.replaceAll("STATE", state));
const lineWords = [
  "\r\n",
  "\r\n\r\n",
  "\n",
  "HTTP/1.1",
  "HTTP/2.0",
  "Host: y\r\n",
  "Content-Length: 5\r\n",
  "Transfer-Encoding: x\r\n",
  "%zz",
  "%00",
  "Origin: ://\r\n",
  "Cookie: carillon=;;=\r\n",
  "Expect: 100-continue\r\n",
  "Upgrade: h2c\r\n",
  "Sec-Fetch-Site: x\r\n",
  "/..//",
  "?a=%",
  "HEAD",
  "PUT",
  "PATCH",
  "DELETE",
  "TRACE",
  "http://[::1]:99999/",
  "Last-Event-ID: é\r\n",
  "Accept: text/html\r\n",
  "X-Forwarded-For: x\r\n",
];

/** Sends the bytes on a new connection. @returns the answer until the server closes the connection or is silent for 100 ms */
function exchange(bytes: Buffer): Promise<string> {
  const { url } = stage();
  return new Promise((resolve) => {
    let text = "";
    const socket = connect(Number(url.port), url.hostname);
    const end = () => {
      socket.destroy();
      resolve(text);
    };
    // The server waits for the rest of an unfinished request, so stop after 100 ms of silence.
    socket.setTimeout(100, end);
    socket.setEncoding("latin1").on("data", (part: string) => {
      text += part;
    });
    socket.on("error", end).on("close", end);
    socket.end(bytes);
  });
}

export const signInTargets = [
  target<Said & { readonly query: string }>({
    name: "provider-answers",
    share: 0.04,
    withinMs: 5_000,
    open: openProvider,
    inputs: fc.record({
      claims: spoiltValues([{}, ...people], oddJson, claimNames, 2),
      header: fc.oneof(
        { weight: 8, arbitrary: fc.constant({ alg: "RS256", kid: "k" }) },
        {
          weight: 1,
          arbitrary: fc.constantFrom<unknown>({ alg: "none" }, { alg: "HS256" }, { alg: "RS256", kid: "z" }, null, 5),
        },
      ),
      token: spoiltValues(
        [{ access_token: "a", token_type: "Bearer", expires_in: 60, id_token: "" }],
        oddJson,
        ["id_token"],
        1,
      ),
      person: spoiltValues(people, oddJson, claimNames, 2),
      text: fc.oneof(
        { weight: 8, arbitrary: fc.constant(null) },
        { weight: 1, arbitrary: spoiltTexts(['{"error":"invalid_grant"}', "<html>", ""], ["{", "\0", '"']) },
      ),
      query: fc.oneof(
        { weight: 6, arbitrary: fc.constant(`code=c&state=${state}`) },
        {
          weight: 1,
          arbitrary: spoiltTexts(
            [`code=c&state=${state}&iss=x`, `error=x&state=${state}`],
            ["&", "=", "%zz", "state=", "code="],
            2,
          ),
        },
      ),
    }),
    feed: async ({ query, ...said }) => {
      const own = (said.claims ?? {}) as object;
      const token = (typeof said.token === "object" && said.token !== null ? said.token : {}) as { id_token?: unknown };
      says = {
        ...said,
        token: {
          ...token,
          ...(token.id_token === "" ? { id_token: signed({ ...goodClaims(), ...own }, said.header) } : {}),
        },
      };
      const path = `/v1/sign-in/provided?${encodeURI(query.toWellFormed()).slice(0, 3_000)}`;
      // Each request uses another local address, because the server refuses an address after many failures.
      const from = `127.${next % 200}.${Math.floor(next / 200) % 250}.${1 + (Math.floor(next / 50_000) % 250)}`;
      next++;
      const cookie = `carillon-attempt=${state}.${nonce}.${verifier}`;
      const answer = await ask({ method: "GET", path, headers: { cookie }, localAddress: from });
      judge(answer, `the way back with ${JSON.stringify(said.claims)?.slice(0, 300)}`);
    },
  }),
  target({
    name: "http-bytes",
    share: 0.04,
    withinMs: 2_000,
    open: openProvider,
    inputs: spoiltTexts(lines, lineWords, 4),
    feed: async (text) => {
      const answer = await exchange(Buffer.from(text.replaceAll("TOKEN", stage().token), "latin1"));
      const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(answer)?.[1] ?? 0);
      hold(status !== 500 && (answer === "" || status > 0), () => `it answers ${answer.slice(0, 400)}`);
    },
  }),
];
let next = 0;
