/** A complete server, as users run it, which receives inputs over HTTP. */
import { randomBytes } from "node:crypto";
import { Agent, request } from "node:http";
import pg from "pg";
import { hashOfSecret, keyText, makeSecret, tokenText } from "../../scheduler/src/access/worker-key.ts";
import { errorCodes } from "../../scheduler/src/base/errors.ts";
import { Carillon } from "../../scheduler/src/library/carillon.ts";
import type { CarillonOptions } from "../../scheduler/src/settings/settings.ts";
import { defineTask } from "../../scheduler/src/task/task.ts";
import { hold } from "./expected.ts";

const quiet = () => undefined;
export const silent = { debug: quiet, info: quiet, warn: quiet, error: quiet };

export interface Stage {
  readonly url: URL;
  readonly token: string;
  readonly key: string;
  readonly agent: Agent;
}
let opened: Stage | undefined;
export const stage = (): Stage => opened as Stage;

/** Starts a server on a new schema, with a user, a token and a worker key. @returns a function that stops it and drops the schema */
export async function openServer(options: Partial<CarillonOptions> = {}): Promise<() => Promise<void>> {
  const store = process.env.CARILLON_TEST_POSTGRES_URL;
  if (!store) throw new Error("CARILLON_TEST_POSTGRES_URL is not set: start this as `npm run prove -- fuzz`");
  const schema = `fuzz_${randomBytes(4).toString("hex")}`;
  const tower = new Carillon({
    store,
    schema,
    listen: "127.0.0.1:0",
    worker: false,
    handleSignals: false,
    log: silent,
    ...options,
  });
  await tower.start();
  const { store: own, nowMs } = await tower.open();
  for (const name of ["settle", "5m"]) await tower.save(defineTask(name));
  const change = { author: "fuzz", reason: "", nowMs: nowMs() };
  const secret = makeSecret();
  const user = await own.access.createUser({ name: "fuzz-admin", hash: "none", role: "admin" }, change);
  const made = await own.access.createToken(
    { userId: user.userId, name: "fuzz", hash: hashOfSecret(secret), role: "admin", scopes: null, expiresMs: 9e12 },
    change,
  );
  const key = { name: "fuzz", groups: ["default"], hash: hashOfSecret(secret), createdBy: "fuzz" };
  const { keyId } = await own.workers.createKey(key, nowMs());
  const agent = new Agent({ keepAlive: true });
  opened = {
    url: new URL(`http://${tower.listening}`),
    token: tokenText(made.tokenId, secret),
    key: keyText(keyId, secret),
    agent,
  };
  return async () => {
    agent.destroy();
    await tower.stop();
    const client = new pg.Client({ connectionString: store });
    await client.connect();
    await client.query(`drop schema if exists ${schema} cascade`);
    await client.end();
  };
}

export interface Answer {
  readonly status: number;
  readonly text: string;
}

export interface Question {
  readonly method: string;
  readonly path: string;
  readonly body?: string | undefined;
  /** The API token or worker key that is sent in the Authorization header. */
  readonly secret?: string;
  readonly headers: Record<string, string>;
  readonly localAddress?: string;
}

/**
 * Sends a request as it is, without the corrections that fetch would make.
 * @returns undefined if the server closed the connection at a request with a content-encoding; any other failure rejects
 */
export function ask(question: Question): Promise<Answer | undefined> {
  const { method, path, body, secret, headers, localAddress } = question;
  const { url, agent } = stage();
  return new Promise((resolve, reject) => {
    const sent = request(
      {
        host: url.hostname,
        port: url.port,
        agent,
        method,
        path,
        ...(localAddress === undefined ? {} : { localAddress, agent: false }),
        headers: {
          ...(secret === undefined ? {} : { authorization: `Bearer ${secret}` }),
          ...(body === undefined
            ? {}
            : { "content-type": "application/json", "content-length": Buffer.byteLength(body) }),
          ...headers,
        },
      },
      (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (part: string) => {
          text += part;
        });
        response.on("end", () => resolve({ status: response.statusCode ?? 0, text }));
        response.on("error", reject);
      },
    );
    // An error is expected here: the server closes the connection when a large body does not match its content-encoding.
    sent.on("error", (error) => ("content-encoding" in headers ? resolve(undefined) : reject(error)));
    sent.end(body);
  });
}

/** @throws Broken unless the status is 503 or below 500, and a refusal contains a known error code */
export function judge(answer: Answer | undefined, what: string): void {
  if (!answer) return;
  const { status, text } = answer;
  // 503 is intended: the server lacks a configuration, which the error code names.
  hold(status < 500 || status === 503, () => `${what} answered ${status}: ${text.slice(0, 500)}`);
  if (status < 400) return;
  const { code } = JSON.parse(text) as { code?: string };
  hold(code !== undefined && Object.hasOwn(errorCodes, code), () => `${what} answered ${status} with the code ${code}`);
}

export const encoded = (value: unknown): string =>
  encodeURIComponent(
    String(typeof value === "object" ? JSON.stringify(value) : value)
      .toWellFormed()
      .slice(0, 2_000),
  );

export function queryOf(query: unknown): string {
  const parts = Object.entries(query as object).flatMap(([name, value]) =>
    [value].flat().map((one) => `${encoded(name)}=${encoded(one)}`),
  );
  return parts.length === 0 ? "" : `?${parts.join("&").slice(0, 6_000)}`;
}
