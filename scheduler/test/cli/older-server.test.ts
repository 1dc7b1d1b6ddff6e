import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, it } from "vitest";
import { z } from "zod";
import type { RouteShape } from "../../src/api/contract/route.ts";
import { shapeOf } from "../../src/api/contract.ts";
import { isCarillonError } from "../../src/base/errors.ts";
import { readGiven } from "../../src/http/given.ts";
import { ApiStage } from "../support/api-stage.ts";
import { inProcess } from "../support/in-process.ts";

const stage = new ApiStage();
const newer = ["alarms", "hooks", "itemSteps", "leftItems", "unreadItems", "appliedItems"];
const without = (value: object) => Object.fromEntries(Object.entries(value).filter(([key]) => !newer.includes(key)));

/**
 * A proxy before the server that answers like older versions: one that knows no alarm rules and hooks in bundles, and one that knows no
 * owners of tasks.
 */
const older = createServer(async (request, response) => {
  const body = await text(request);
  const isBundle = request.url?.startsWith("/v1/bundles/") === true;
  const told = (status: number, answer: object) =>
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(answer));
  if (isBundle) {
    const { shape } = (shapeOf("applyBundle") as { body: z.ZodObject }).body;
    const known = { body: z.strictObject(without({ ...shape, plan: z.string().optional() })) } as unknown as RouteShape;
    try {
      readGiven(known, { params: {}, query: {}, body: JSON.parse(body) });
    } catch (error) {
      if (!isCarillonError(error, "REQUEST_INVALID")) throw error;
      return told(400, { code: error.code, detail: error.message, hint: error.hint, path: error.path });
    }
  }
  const isTasks = /^\/v1\/tasks(?:\?|$)/.test(request.url ?? "");
  if (isTasks && request.url?.includes("owner="))
    return told(400, { code: "REQUEST_INVALID", detail: "owner is unknown", hint: "", path: "owner" });
  const { authorization = "" } = request.headers;
  const answer = await fetch(`${stage.urlOf()}${request.url}`, {
    method: request.method ?? "GET",
    headers: { authorization, "content-type": "application/json" },
    ...(body === "" ? {} : { body }),
  });
  const given = (await answer.json()) as { items?: { owner?: unknown }[] };
  if (isTasks) for (const item of given.items ?? []) item.owner = undefined;
  return told(answer.status, isBundle && answer.ok ? without(given) : given);
});

let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "carillon-older-"));
  await stage.open();
  await new Promise<void>((resolve) => older.listen(0, "127.0.0.1", resolve));
});
afterAll(async () => {
  await new Promise((resolve) => older.close(resolve));
  await stage.close();
  await rm(folder, { recursive: true, force: true });
});

const apply = async (token: string, url: string, yaml: string, ...args: string[]) => {
  const path = join(folder, "bundle.yaml");
  await writeFile(path, `bundle: older\n${yaml}`);
  return inProcess(["apply", path, ...args, "--server", url], { CARILLON_TOKEN: token, XDG_CONFIG_HOME: folder });
};
const tasks = (...names: string[]) => `tasks: { ${names.map((name) => `${name}: {}`).join(", ")} }\n`;

it("apply --prune works through a server that knows only tasks in bundles, and is refused for alarm rules", async () => {
  const url = `http://127.0.0.1:${(older.address() as AddressInfo).port}`;
  const admin = stage.tokens.admin;
  expect((await apply(admin, url, tasks("a", "b"))).code).toBe(0);
  const pruned = await apply(admin, url, tasks("a"), "--prune");
  expect([pruned.code, pruned.stdout]).toEqual([0, expect.stringContaining("1 removed")]);
  const refused = await apply(admin, url, `${tasks("a")}alarms: { q: { kind: queue, more: 1 } }\n`, "--prune");
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining("REQUEST_INVALID")]);
});

it("apply --prune works with a token that is only for tasks, and says what was left", async () => {
  const only = await stage.token("admin", { scopes: ["cluster:read", "tasks:read", "tasks:write"] });
  expect((await apply(only, stage.urlOf(), tasks("a", "c"))).code).toBe(0);
  const pruned = await apply(only, stage.urlOf(), tasks("a"), "--prune");
  expect([pruned.code, pruned.stdout]).toEqual([0, expect.stringContaining("1 removed")]);
  expect(pruned.stderr).toContain("left as they are, because the token is not for them: alarms and hooks");
});

it("tasks list shows no owners of a server that knows none, and such a server refuses to filter by owner", async () => {
  const list = (url: string, ...args: string[]) =>
    inProcess(["tasks", "list", ...args, "--server", url], {
      CARILLON_TOKEN: stage.tokens.admin,
      XDG_CONFIG_HOME: folder,
    });
  const owned = "tasks: { mine: { owner: payments }, other: { owner: search }, free: {} }\n";
  expect((await apply(stage.tokens.admin, stage.urlOf(), owned)).code).toBe(0);
  expect((await list(stage.urlOf())).stdout).toContain("OWNER");
  const mine = await list(stage.urlOf(), "--owner", "payments", "--json");
  expect((JSON.parse(mine.stdout) as { name: string }[]).map(({ name }) => name)).toEqual(["mine"]);
  const url = `http://127.0.0.1:${(older.address() as AddressInfo).port}`;
  const { code, stdout } = await list(url);
  expect([code, stdout]).toEqual([0, expect.stringContaining("mine")]);
  expect(stdout).not.toContain("OWNER");
  const refused = await list(url, "--owner", "payments");
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining("REQUEST_INVALID")]);
});
