/** Tests commands against a server whose responses break off in the middle of the body. */
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeSecretKey } from "../../src/access/secrets/secret-keys.ts";
import { againAfterMs } from "../../src/cli/cluster/calls.ts";
import { ApiStage } from "../support/api-stage.ts";
import { inProcess, typed } from "../support/in-process.ts";
import { lines } from "./command-lines.ts";
import { ofServer, placedIn, wordsOf } from "./leaves.ts";
import { filesOf, type Known, prepared } from "./prepared.ts";

const stage = new ApiStage();
let known: Known;
let folder = "";
const environment = () => ({ CARILLON_TOKEN: stage.tokens.admin, XDG_CONFIG_HOME: folder });
const jsonOf = async (...args: string[]) =>
  JSON.parse((await inProcess([...args, "--server", stage.urlOf(), "--json"], environment())).stdout);

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "carillon-cut-"));
  for (const [name, text] of Object.entries(filesOf)) await writeFile(join(folder, name), text);
  process.env.CARILLON_SECRET_KEYS = makeSecretKey();
  known = await prepared(await stage.open());
  delete process.env.CARILLON_SECRET_KEYS;
  // Shortens the pause before a repeated request, so that the tests do not wait.
  againAfterMs.fill(1);
});
afterAll(async () => {
  await stage.close();
  await rm(folder, { recursive: true, force: true });
});

interface Passed {
  /** The idempotency key of a request that changes something; undefined for a read. */
  key: string | undefined;
  method: string;
  path: string;
  cut: boolean;
}

/**
 * Starts a proxy in front of the stage's server. The proxy breaks off those responses in the middle of their bodies that `cuts` selects.
 */
async function cutting() {
  let cuts: (asked: Omit<Passed, "cut">, before: readonly Passed[]) => boolean = () => false;
  let passed: Passed[] = [];
  const { hostname, port } = new URL(stage.urlOf());
  const proxy = createServer((asked, answer) => {
    const { method = "", url: path = "", headers } = asked;
    const seen = { method, path, key: headers["idempotency-key"] as string | undefined };
    const cut = cuts(seen, passed);
    passed.push({ ...seen, cut });
    const upstream = request({ hostname, port, method, path, headers }, (given) => {
      // A response without a body is broken off before its headers are sent.
      if (cut && given.statusCode === 204) return void given.resume().once("end", () => answer.destroy());
      answer.writeHead(given.statusCode as number, given.headers);
      if (!cut) return void given.pipe(answer);
      given.once("data", (chunk: Buffer) => answer.write(chunk.subarray(0, 5), () => answer.destroy()));
    });
    asked.pipe(upstream);
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  const carried = async (which: typeof cuts, words: string[]) => {
    cuts = which;
    passed = [];
    const placed = placedIn(words, { ...known, folder });
    return { ...(await typed("sealed value", [...placed, "--server", url], environment())), passed };
  };
  return {
    close: () => proxy.close(),
    carried,
    /** Runs a command; the first response to a request by the method `at` is broken off. */
    async cut(at: string, words: string[]) {
      const done = await carried(({ method }, before) => method === at && !before.some(({ cut }) => cut), words);
      expect([words, done.passed.filter(({ cut }) => cut).length]).toEqual([words, 1]);
      return done;
    },
  };
}

describe("a server's answer that breaks off", () => {
  it("is requested again with the same idempotency key, so that the change is made once", async () => {
    const between = await cutting();
    try {
      const runsOfNobody = async () =>
        (await jsonOf("runs", "list", "--task", "nobody")).map((run: { run: number }) => run.run);
      const before = await runsOfNobody();
      const made = await between.cut("POST", ["tasks", "run", "nobody", "--json"]);
      expect([made.code, made.stderr]).toEqual([0, expect.not.stringContaining("BUG")]);
      const { run } = JSON.parse(made.stdout);
      expect((await runsOfNobody()).filter((id: number) => !before.includes(id))).toEqual([run]);
      const user = await between.cut("POST", ["users", "create", "cut", "--role", "viewer"]);
      expect([user.code, (await jsonOf("users", "list")).map(({ name }: { name: string }) => name)]).toEqual([
        0,
        expect.arrayContaining(["cut"]),
      ]);
      expect((await between.cut("GET", ["users", "list"])).stderr).toContain("SERVER_UNREACHABLE");
    } finally {
      between.close();
    }
  });

  it("is reported as possibly done if it contains a secret, which is not stored", async () => {
    const between = await cutting();
    try {
      const { code, stderr } = await between.cut("POST", ["keys", "create", "cut", "--json"]);
      expect([code, JSON.parse(stderr)]).toMatchObject([
        4,
        {
          code: "SERVER_UNREACHABLE",
          message: expect.stringContaining("it may have been done all the same"),
          hint: expect.stringContaining("carillon keys list"),
        },
      ]);
      expect((await jsonOf("keys", "list")).map(({ name }: { name: string }) => name)).toContain("cut");
    } finally {
      between.close();
    }
  });
});

/** Matches the names of commands that change nothing, by their last word. */
const look =
  /(?:^|\s)(?:check|list|show|next|tail|diff|export|preview|simulate|statistics|verify|sign-ins|wait|alarms|silences|rules|nodes|top)$/;
const isChange = ({ key }: Pick<Passed, "key">) => key !== undefined;
const saidIn = (stderr: string) => (stderr === "" ? {} : JSON.parse(stderr.trim().split("\n").at(-1) as string));
const told = (what: string) =>
  expect.objectContaining({
    code: "SERVER_UNREACHABLE",
    message: expect.stringContaining(what),
    hint: expect.stringMatching(/^Look with carillon /),
  });
/** Commands whose response contains a secret that the server does not store. */
const withSecret = new Set(["keys create", "tokens create"]);
const mayBeDone = told("it may have been done all the same");

describe("for every command", () => {
  it.each(ofServer().map(({ name }) => name))(
    "%s: a change whose answer is lost is requested again, or reported as lost",
    async (name) => {
      const between = await cutting();
      const some = lines[name] ?? [];
      let next = 0;
      /** Runs the command's next line that changes something; the responses that `cuts` selects are broken off. */
      const changing = async (cuts: Parameters<typeof between.carried>[0]) => {
        for (let tries = 0; tries < some.length; tries++) {
          const line = some[next++ % some.length] as string;
          const done = await between.carried(cuts, [...name.split(" "), ...wordsOf(line), "--json"]);
          const changes = done.passed.filter(isChange);
          if (changes.length > 0) return { ...done, line, changes, said: saidIn(done.stderr) };
        }
        return undefined;
      };
      try {
        const once = await changing((asked, before) => isChange(asked) && !before.some(({ key }) => key === asked.key));
        expect([name, once !== undefined]).toEqual([name, !look.test(name)]);
        if (once === undefined) return;
        // The secret is not stored, so a repeated request cannot return it.
        if (withSecret.has(name)) expect(once.said).toEqual(mayBeDone);
        else {
          expect([once.line, once.said.code]).not.toEqual([once.line, "SERVER_UNREACHABLE"]);
          for (const { key } of once.changes) expect(once.changes.filter((one) => one.key === key)).toHaveLength(2);
        }

        const never = await changing(isChange);
        expect([never?.line, never?.code, never?.said]).toEqual([never?.line, 4, mayBeDone]);
        expect(new Set(never?.changes.map(({ key }) => key)).size).toBe(1);

        const unread = await changing((asked, before) => !isChange(asked) && before.some(isChange));
        if (unread?.passed.some(({ cut }) => cut) && unread.code === 4)
          expect([unread.line, unread.said]).toEqual([unread.line, told("what was to be changed is done")]);
      } finally {
        between.close();
      }
    },
  );
});
