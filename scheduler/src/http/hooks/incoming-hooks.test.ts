import { createHmac } from "node:crypto";
import fastify from "fastify";
import { expect, test } from "vitest";
import type { HookContent } from "../../access/hooks/hook.ts";
import type { KeyedHook } from "../../access/hooks/hook-store.ts";
import { statusOf } from "../../api/problem-status.ts";
import { CarillonError, isCarillonError } from "../../base/errors.ts";
import { Enqueues } from "../../store/enqueues.ts";
import { IncomingHooks, type IncomingHooksOptions } from "./incoming-hooks.ts";

const secret = "a secret of the sender";
const content = { secret: "s", scheme: "github", task: "deploy" } as const;

/** A server with these hooks. The secrets of those whose name begins with "shut" cannot be decrypted. */
function server(hooks: Record<string, HookContent>) {
  const lines: { hook?: string; message: string }[] = [];
  const keys: (string | null)[] = [];
  const line = (fields: object, message: string) => void lines.push({ ...fields, message });
  const place = { name: "s", version: 1, keyId: "k", wrapped: Buffer.of(), sealed: Buffer.of() };
  let nowMono = 0;
  const keyed = Object.entries(hooks).map(
    ([name, of]): KeyedHook => ({
      name,
      version: 1,
      author: "t",
      reason: "",
      changedMs: 0,
      bundle: null,
      content: of,
      sealed: { ...place, keyId: name },
    }),
  );
  const enqueue = async ({ key }: { key: string | null }) => ({ runId: keys.push(key), created: true });
  const enqueues = new Enqueues({
    runs: { enqueueReplacing: enqueue as never },
    enqueuer: { add: enqueue as never },
    tracing: undefined,
    taskIdOf: async () => 1,
  });
  const options = {
    hooks: { keyed: async () => keyed },
    enqueues,
    clock: { monotonic: () => nowMono },
    storeClock: { now: () => 1_700_000_000_000 },
    log: { warn: line, error: line },
    secretKeys: {
      open: ({ keyId }: { keyId: string }) => {
        if (keyId.startsWith("shut")) throw new CarillonError("SECRET_KEY_MISSING", `there is no key ${keyId}`);
        return secret;
      },
    },
    quotas: { take: async () => undefined },
    checkServing: () => undefined,
  };
  const app = fastify();
  app.setErrorHandler((error, _, reply) => {
    if (!isCarillonError(error)) throw error;
    return reply.code(statusOf(error.code)).send({ code: error.code, message: error.message, path: error.path });
  });
  new IncomingHooks(options as unknown as IncomingHooksOptions).register(app);
  /** Sends a request as GitHub does. */
  const send = async (hook: string, { body = Buffer.from("{}"), delivery = "d-1", key = secret } = {}) => {
    const signature = createHmac("sha256", key).update(body).digest("hex");
    const { statusCode, json } = await app.inject({
      method: "POST",
      url: `/v1/hooks/${hook}`,
      headers: {
        "content-type": "application/json",
        "x-github-delivery": delivery,
        "x-hub-signature-256": `sha256=${signature}`,
      },
      payload: body,
    });
    return { status: statusCode, ...json() };
  };
  return { send, lines, keys, pass: (ms: number) => (nowMono += ms) };
}

test("a hook whose secret cannot be opened answers as one that does not exist, and is logged once a minute", async () => {
  const { send, lines, pass } = server({ shut: content, shut2: { ...content, scheme: "bearer" } });
  const unknown = await send("none");
  expect(unknown).toMatchObject({ status: 401, code: "HOOK_REFUSED" });
  for (let second = 0; second < 60; second++, pass(1_000))
    for (const hook of ["shut", "shut2"]) expect(await send(hook)).toEqual(unknown);
  expect(lines).toEqual(
    ["shut", "shut2"].map((hook) => ({
      hook,
      error: expect.stringContaining(`no key ${hook}`),
      message: "the secret of a hook cannot be opened",
    })),
  );
  await send("none");
  expect(lines).toHaveLength(4);
});

test("hooks of one task do not share their keys", async () => {
  const { send, keys } = server({ a: content, "a:b": content, open: { ...content, scheme: "github", key: "/k" } });
  for (const [hook, delivery] of [
    ["a", "b:c"],
    ["a:b", "c"],
    ["a", "c"],
  ] as const)
    expect(await send(hook, { delivery })).toMatchObject({ status: 202 });
  expect(keys).toEqual(["a#b:c", "a:b#c", "a#c"]);
  expect(await send("open", { body: Buffer.from(`{"k":"${"x".repeat(195)}"}`) })).toMatchObject({ status: 202 });
  expect(await send("open", { body: Buffer.from(`{"k":"${"x".repeat(196)}"}`) })).toMatchObject({
    status: 400,
    code: "OPTION_INVALID",
    message: expect.stringContaining("200 characters"),
  });
});

test("a body that is not UTF-8 is refused, since its run would have other text", async () => {
  const { send, keys } = server({ a: content });
  for (const body of [
    [0x22, 0xff, 0x22],
    [0x22, 0xed, 0xa0, 0x80, 0x22],
    [0xef, 0xbb, 0xbf, 0x31],
  ])
    expect(await send("a", { body: Buffer.from(body) })).toMatchObject({ status: 400, code: "REQUEST_INVALID" });
  expect(keys).toEqual([]);
  expect(await send("a", { body: Buffer.from('"é钟🔔\ufffd"') })).toMatchObject({ status: 202 });
});
