import { createHmac } from "node:crypto";
import { createServer, type IncomingHttpHeaders, type RequestListener, type Server } from "node:http";
import { type AddressInfo, createServer as createSocketServer } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { signedAs } from "../../../test/support/rfc9421.ts";
import { systemClock } from "../../base/clock.ts";
import { type CarillonError, isCarillonError, CarillonError as TypedError } from "../../base/errors.ts";
import type { Run } from "../../run/handler.ts";
import { type HttpOptions, httpSpec } from "../../task/http.ts";
import { type HttpCallerOptions, httpCaller } from "./handler.ts";

interface Received {
  method: string;
  url: string;
  headers: IncomingHttpHeaders;
  body: string;
}

const servers: { close(): void; closeAllConnections?(): void }[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.close();
    server.closeAllConnections?.();
  }
});

async function listening(server: Server | ReturnType<typeof createSocketServer>, host = "127.0.0.1"): Promise<number> {
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  return (server.address() as AddressInfo).port;
}

/** An HTTP server that records its requests. */
async function receiver(answer: RequestListener) {
  const received: Received[] = [];
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8");
    request.on("data", (chunk) => {
      body += chunk;
    });
    request.on("end", () => {
      received.push({ method: request.method ?? "", url: request.url ?? "", headers: request.headers, body });
      answer(request, response);
    });
  });
  const port = await listening(server);
  return { received, port, url: `http://127.0.0.1:${port}` };
}

const saying =
  (status: number, headers: Record<string, string> = {}, body = ""): RequestListener =>
  (_, response) => {
    response.writeHead(status, headers);
    response.end(body);
  };

interface Setting extends Partial<HttpCallerOptions> {
  payload?: unknown;
  signal?: AbortSignal;
  slot?: Date | null;
  schedule?: string;
}

/** Executes one run of an HTTP task as a worker with these settings would. */
function call(options: HttpOptions, { payload = { a: 1 }, signal, slot = null, schedule, ...caller }: Setting = {}) {
  const lines: string[] = [];
  const write = (message: string) => void lines.push(message);
  const run = {
    id: 42,
    task: "nächtlich",
    slot,
    schedule: schedule ?? null,
    attempt: 2,
    fence: 7,
    signal: signal ?? new AbortController().signal,
    log: { debug: write, info: write, warn: write, error: write },
  } as unknown as Run;
  const handler = httpCaller({ allow: ["127.0.0.1"], clock: systemClock, ...caller })(httpSpec("t", options));
  return { lines, result: Promise.resolve(handler(run, payload)) };
}

async function failure(options: HttpOptions, setting: Setting = {}): Promise<CarillonError> {
  const thrown = await call(options, setting).result.then(
    (value) => expect.fail(`it did not fail: ${JSON.stringify(value)}`),
    (error: unknown) => error,
  );
  if (!isCarillonError(thrown)) throw thrown;
  return thrown;
}

describe("a call", () => {
  it("carries the payload and the run's identity, and its answer is the result", async () => {
    const { url, received } = await receiver(
      saying(201, { "content-type": "application/json; charset=utf-8" }, '{"ok":true}'),
    );
    const { result, lines } = call(
      { url: `${url}/hook?key=secret`, headers: { "X-Tenant": "eu", Authorization: "Bearer t" } },
      { slot: new Date(0) },
    );
    expect(await result).toEqual({ status: 201, body: { ok: true } });
    expect(received).toHaveLength(1);
    expect(received[0]).toMatchObject({ method: "POST", url: "/hook?key=secret", body: '{"a":1}' });
    expect(received[0]?.headers).toMatchObject({
      "content-type": "application/json",
      "x-tenant": "eu",
      authorization: "Bearer t",
      "carillon-task": encodeURIComponent("nächtlich"),
      "carillon-run": "42",
      "carillon-slot": "1970-01-01T00:00:00.000Z",
      "carillon-attempt": "2",
      "carillon-fence": "7",
    });
    expect(received[0]?.headers["carillon-signature"], "there is no secret to sign with").toBeUndefined();
    expect(lines.join()).toContain(": 201 after");
    expect(lines.join(), "a query often holds keys").not.toContain("secret");
  });

  it("is signed over method, host, path, query, body and the run headers, and unsigned without a secret", async () => {
    const { url, received } = await receiver(saying(200));
    const told = [
      "carillon-task",
      "carillon-schedule",
      "carillon-run",
      "carillon-slot",
      "carillon-attempt",
      "carillon-fence",
    ];
    const secret = { "127.0.0.1": "s3cret" };
    for (const [options, more] of [
      [{ url }, { slot: new Date(0) }],
      [{ url }, { slot: new Date(0), schedule: "tenant/7" }],
      [{ url: `${url}/settle%20all?a=1&b` }, {}],
      [{ url: `${url}/settle`, method: "GET" }, {}],
      [{ url: `${url}/settle`, method: "PUT" }, { payload: null }],
    ] as [HttpOptions, Setting][])
      await call(options, { secret, ...more }).result;
    for (const one of received) {
      const present = told.filter((name) => name in one.headers);
      expect(one.headers).toMatchObject(signedAs({ ...one, raw: one.body }, present, "cluster", "s3cret"));
    }
    expect(new Set(received.map(({ headers }) => headers.signature)).size).toBe(5);
    await call({ url }).result;
    for (const name of ["signature", "signature-input", "content-digest"])
      expect(received[5]?.headers).not.toHaveProperty(name);
  });

  it("has the legacy signature over time, run, slot, attempt, fence and body, with the host's own secret", async () => {
    const { url, received } = await receiver(saying(200));
    const beganS = Math.floor(Date.now() / 1_000);
    await call({ url }, { secret: "s3cret", slot: new Date(0) }).result;
    await call({ url }, { secret: { "127.0.0.1": "other", "api.test": "s3cret" } }).result;
    await call({ url }, { secret: { "api.test": "s3cret" } }).result;
    const [first, second, third] = received.map(({ headers }) => headers);
    const sign = (secret: string, headers: IncomingHttpHeaders | undefined) => {
      const { "carillon-timestamp": timestamp, "carillon-slot": slot = "" } = headers ?? {};
      expect(Number(timestamp)).toBeGreaterThanOrEqual(beganS);
      expect(Number(timestamp)).toBeLessThanOrEqual(Date.now() / 1_000);
      return `v1=${createHmac("sha256", secret).update(`${timestamp}\n42\n${slot}\n2\n7\n{"a":1}`).digest("hex")}`;
    };
    expect(first?.["carillon-signature"]).toBe(sign("s3cret", first));
    expect(second?.["carillon-signature"]).toBe(sign("other", second));
    expect(third?.["carillon-signature"]).toBeUndefined();
  });

  it.each<[string, unknown]>([
    ["a host with a port", { "api.example.com:8443": "s3cret" }],
    ["a host in capitals", { "API.example.com": "s3cret" }],
    ["a pattern", { "*.example.com": "s3cret" }],
    ["a URL", { "https://api.example.com": "s3cret" }],
    ["an empty secret", ""],
    ["a host's empty secret", { "api.example.com": "" }],
    ["a secret that is no text", { "api.example.com": 7 }],
  ])("is never unsigned by mistake: the secret %s is refused", (_, secret) => {
    const made = () => httpCaller({ clock: systemClock, secret: secret as string });
    expect(made).toThrow(expect.objectContaining({ code: "OPTION_INVALID" }));
    expect(made).not.toThrow(/s3cret/);
  });

  it.each<[string, Partial<HttpOptions>, unknown, string, string | undefined]>([
    ["a body of its own, as JSON", { body: { b: [2] } }, { a: 1 }, '{"b":[2]}', "application/json"],
    ["a text as it is", { body: "plain", headers: { "Content-Type": "text/x" } }, 1, "plain", "text/x"],
    ["no payload", {}, undefined, "null", "application/json"],
    ["none with GET", { method: "GET" }, { a: 1 }, "", undefined],
    ["none with DELETE", { method: "DELETE" }, { a: 1 }, "", undefined],
    ["payload with PUT", { method: "PUT" }, "ü", '"ü"', "application/json"],
  ])("sends %s", async (_, options, payload, body, type) => {
    const { url, received } = await receiver(saying(200));
    // null instead of undefined, because undefined would select the default payload.
    await call({ url, ...options }, { payload: payload ?? null }).result;
    expect(received[0]).toMatchObject({ body, method: options.method ?? "POST" });
    expect(received[0]?.headers["content-type"]).toBe(type);
  });

  it("keeps a text answer, invalid JSON as text, and the start of a long answer", async () => {
    const bodies: [string, string][] = [
      ["text/plain", "hello\0"],
      ["application/json", "{no"],
      ["application/json", JSON.stringify("x".repeat(100_000))],
    ];
    const { url } = await receiver((_, response) => {
      const [type, body] = bodies.shift() as [string, string];
      response.writeHead(200, { "content-type": type });
      response.end(body);
    });
    expect(await call({ url }).result).toEqual({ status: 200, body: "hello\ufffd" });
    expect(await call({ url }).result).toEqual({ status: 200, body: "{no" });
    expect(await call({ url }).result).toEqual({ status: 200, body: `"${"x".repeat(32 * 1024 - 1)}`, cut: true });
  });

  it("does not read an endless body", async () => {
    let closed: () => void = () => undefined;
    const over = new Promise<void>((resolve) => {
      closed = resolve;
    });
    const { url } = await receiver((_, response) => {
      const chunk = Buffer.alloc(64 * 1024, "x");
      response.on("close", closed);
      const more = () => {
        while (!response.destroyed && response.write(chunk));
        if (!response.destroyed) response.once("drain", more);
      };
      more();
    });
    expect(await call({ url }).result).toMatchObject({ status: 200, cut: true });
    await over;
  });
});

describe("the status of an answer", () => {
  it.each([
    [400, "HTTP_REFUSED"],
    [401, "HTTP_REFUSED"],
    [404, "HTTP_REFUSED"],
    [410, "HTTP_REFUSED"],
    [302, "HTTP_REFUSED"],
    [408, "HTTP_FAILED"],
    [429, "HTTP_FAILED"],
    [500, "HTTP_FAILED"],
    [503, "HTTP_FAILED"],
  ])("%i is %s", async (status, code) => {
    const { url } = await receiver(saying(status, {}, "why not"));
    const error = await failure({ url });
    expect(error).toMatchObject({ code, message: expect.stringContaining(`${status}: why not`) });
    expect(error.cause).toEqual({ status, body: "why not" });
    expect(error.hint).not.toBe("");
  });

  it("is judged by the task's own lists", async () => {
    const { url } = await receiver(saying(404));
    expect(await call({ url, okStatuses: ["2xx", 404] }).result).toEqual({ status: 404, body: "" });
    expect((await failure({ url, retryStatuses: ["4xx"] })).code).toBe("HTTP_FAILED");
    const broken = await receiver(saying(500));
    expect((await failure({ url: broken.url, retryStatuses: [429] })).code).toBe("HTTP_REFUSED");
  });

  it("with Retry-After delays the retry, in seconds or until a date", async () => {
    const [beganMs, hourMs] = [Date.now(), 3_600_000];
    const given = ["7", new Date(beganMs + hourMs).toUTCString(), new Date(0).toUTCString(), "soon", "-1", "1e9"];
    const left = [...given];
    const { url } = await receiver((request, response) =>
      saying(429, { "retry-after": left.shift() as string })(request, response),
    );
    const asked: (number | undefined)[] = [];
    for (const _ of given) asked.push((await failure({ url })).retryAfterMs);
    expect(asked[0]).toBe(7_000);
    // Retry-After gives the date in whole seconds, and the remaining time is computed when the answer arrives.
    expect(asked[1]).toBeGreaterThan(hourMs - 1_000 - (Date.now() - beganMs) - 1);
    expect(asked[1]).toBeLessThanOrEqual(hourMs);
    expect(asked.slice(2)).toEqual([undefined, undefined, undefined, undefined]);
  });

  it("is retryable if the connection is refused or breaks off", async () => {
    const gone = await receiver(saying(200));
    const [server] = servers.splice(0) as [Server];
    await new Promise((resolve) => server.close(resolve));
    expect(await failure({ url: gone.url })).toMatchObject({
      code: "HTTP_FAILED",
      message: expect.stringContaining("ECONNREFUSED"),
    });
    const texts = [
      "",
      "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
      "nonsense\r\n\r\n",
      "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
    ];
    for (const text of texts) {
      const port = await listening(createSocketServer((socket) => socket.once("data", () => socket.end(text))));
      expect((await failure({ url: `http://127.0.0.1:${port}` })).code, JSON.stringify(text)).toBe("HTTP_FAILED");
    }
  });
});

describe("the end of a call", () => {
  const silent = () => {
    let asked: () => void = () => undefined;
    const arrived = new Promise<void>((resolve) => {
      asked = resolve;
    });
    return { arrived, answer: (() => asked()) as RequestListener };
  };

  it("the run's abort signal ends the request with the signal's reason", async () => {
    const { arrived, answer } = silent();
    const { url } = await receiver(answer);
    const controller = new AbortController();
    const failed = failure({ url }, { signal: controller.signal });
    await arrived;
    controller.abort(new TypedError("CANCELLED", "not wanted any more"));
    expect(await failed).toMatchObject({ code: "CANCELLED" });
  });

  it("the abort also works during name resolution and before the request begins", async () => {
    const controller = new AbortController();
    let asked: () => void = () => undefined;
    const asking = new Promise<void>((resolve) => {
      asked = resolve;
    });
    const resolve = () => {
      void asked();
      return new Promise<string[]>(() => undefined);
    };
    const failed = failure({ url: "http://api.test/" }, { allow: ["api.test"], resolve, signal: controller.signal });
    await asking;
    controller.abort(new TypedError("TIMEOUT", "too long"));
    expect(await failed).toMatchObject({ code: "TIMEOUT" });
    const { url, received } = await receiver(saying(200));
    expect(await failure({ url }, { signal: controller.signal })).toMatchObject({ code: "TIMEOUT" });
    expect(received).toEqual([]);
  });

  it("the call's timeout covers an answer that never ends", async () => {
    const { url } = await receiver((_, response) => {
      response.writeHead(200);
      response.write("begun");
    });
    expect(await failure({ url, timeout: "200ms" })).toMatchObject({
      code: "HTTP_FAILED",
      message: expect.stringContaining("no whole answer within 200 ms"),
    });
  });
});

describe("forbidden targets", () => {
  const canary = () => receiver(saying(200));

  it("every target is forbidden until the worker's configuration allows some", async () => {
    const { url, received } = await canary();
    expect(await failure({ url }, { allow: [] })).toMatchObject({ code: "HTTP_NOT_ALLOWED" });
    expect(received).toEqual([]);
  });

  it("the worker's own machine is forbidden in any spelling", async () => {
    const { port, received } = await canary();
    const spellings = [
      ..."127.0.0.1 2130706433 0x7f000001 0x7f.1 017700000001 0177.0.0.1 127.1 127.0.1".split(" "),
      ..."[::1] [::ffff:127.0.0.1] [::ffff:7f00:1] [0:0:0:0:0:ffff:7f00:1] [::127.0.0.1] 0 0.0.0.0 [::]".split(" "),
      ..."127。0。0。1 １２７.0.0.1 localhost 127.0.0.1.".split(" "),
    ];
    for (const host of spellings) {
      const url = `http://${host}:${port}/`;
      const error = await failure({ url }, { allow: ["*", "api.test", "10.0.0.0/8"] });
      expect(error.code, host).toBe("HTTP_NOT_ALLOWED");
    }
    expect(received).toEqual([]);
  });

  it.each(["http://169.254.169.254/latest/meta-data/", "http://[fd00:ec2::254]/", "http://metadata.test/"])(
    "a cloud's metadata service is forbidden: %s",
    async (url) => {
      const resolve = async () => ["169.254.169.254"];
      expect((await failure({ url }, { allow: ["*"], resolve })).code).toBe("HTTP_NOT_ALLOWED");
    },
  );

  it("a listed name with an internal address is forbidden, and an unlisted name is not even resolved", async () => {
    const { port, received } = await canary();
    const looked: string[] = [];
    const resolve = async (host: string) => {
      looked.push(host);
      return ["127.0.0.1", "::1"];
    };
    const error = await failure({ url: `http://api.test:${port}/` }, { allow: ["api.test"], resolve });
    expect(error).toMatchObject({ code: "HTTP_NOT_ALLOWED", message: expect.stringContaining("127.0.0.1") });
    expect((await failure({ url: "http://other.test/" }, { allow: ["api.test"], resolve })).code).toBe(
      "HTTP_NOT_ALLOWED",
    );
    expect(looked).toEqual(["api.test"]);
    expect(received).toEqual([]);
  });

  it("if a name's address changes, the address that was checked is called", async () => {
    const { port, received } = await canary();
    let answers = 0;
    // The name resolves to the listed address first, and from then on to an address that must not be called.
    const resolve = async () => (answers++ === 0 ? ["127.0.0.1"] : ["127.0.0.2"]);
    const allow = ["rebind.test", "127.0.0.1"];
    await call({ url: `http://rebind.test:${port}/` }, { allow, resolve }).result;
    expect(answers, "asked once").toBe(1);
    expect(received[0]?.headers.host).toBe(`rebind.test:${port}`);
    expect((await failure({ url: `http://rebind.test:${port}/` }, { allow, resolve })).code).toBe("HTTP_NOT_ALLOWED");
    // If a name resolves to both addresses, only the permitted one is called.
    await call({ url: `http://mixed.test:${port}/` }, { allow, resolve: async () => ["127.0.0.2", "127.0.0.1"] })
      .result;
    expect(received).toHaveLength(2);
  });

  it("a name without an address is retryable", async () => {
    const resolve = async () => Promise.reject(new Error("ENOTFOUND"));
    expect(await failure({ url: "http://api.test/" }, { allow: ["api.test"], resolve })).toMatchObject({
      code: "HTTP_FAILED",
    });
  });
});

describe("redirects", () => {
  const toward = (status: number, location: () => string) =>
    receiver((request, response) => saying(status, { location: location() })(request, response));

  it("are not followed, and the error names the target", async () => {
    const last = await receiver(saying(200));
    const { url } = await toward(302, () => last.url);
    expect(await failure({ url })).toMatchObject({ code: "HTTP_REFUSED", message: expect.stringContaining(last.url) });
    expect(last.received).toEqual([]);
  });

  it.each([
    [301, "GET", ""],
    [303, "GET", ""],
    [307, "POST", '{"a":1}'],
    [308, "POST", '{"a":1}'],
  ])("%i is followed if the task allows it, as %s", async (status, method, body) => {
    const last = await receiver(saying(200, {}, "there"));
    const { url, received } = await toward(status, () => `${last.url}/there`);
    const headers = { Authorization: "Bearer t", Cookie: "c=1", "X-Key": "k" };
    const { result } = call({ url, headers, redirects: 1 }, { secret: { "127.0.0.1": "s" } });
    expect(await result).toEqual({ status: 200, body: "there" });
    expect(received[0]?.headers).toMatchObject({ authorization: "Bearer t", "x-key": "k" });
    expect(last.received[0]).toMatchObject({ method, body, url: "/there" });
    const sent = last.received[0]?.headers ?? {};
    for (const name of ["authorization", "cookie", "x-key"])
      expect(sent[name], `another port is another origin: ${name}`).toBeUndefined();
  });

  it("send the task's headers only to the original origin", async () => {
    let first = true;
    const { url, received } = await receiver((request, response) => {
      const headers = { location: "/again" };
      saying(first ? 307 : 200, first ? headers : {})(request, response);
      first = false;
    });
    await call({ url, headers: { authorization: "Bearer t" }, redirects: 2 }).result;
    expect(received.map(({ headers }) => headers.authorization)).toEqual(["Bearer t", "Bearer t"]);
  });

  it("do not lead to forbidden targets, and do not loop", async () => {
    const other = await receiver(saying(200));
    const places = [
      `http://localhost:${other.port}/`,
      `http://[::1]:${other.port}/`,
      "http://169.254.169.254/",
      "http://127.0.0.2/",
      "file:///etc/passwd",
      `http://user:password@127.0.0.1:${other.port}/`,
    ];
    for (const place of places) {
      const { url } = await toward(302, () => place);
      const resolve = async () => ["::1"];
      expect((await failure({ url, redirects: 5 }, { resolve })).code, place).toBe("HTTP_NOT_ALLOWED");
    }
    expect(other.received).toEqual([]);
    let own = "";
    const round = await toward(307, () => own);
    own = round.url;
    expect((await failure({ url: round.url, redirects: 3 })).code).toBe("HTTP_REFUSED");
    expect(round.received).toHaveLength(4);
  });
});
