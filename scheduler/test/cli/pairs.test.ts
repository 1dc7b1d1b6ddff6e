/** Every command by the store and by a server: the same exit code, output, error code, path and hint, or a reason why not. */

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { makeSecretKey } from "../../src/access/secrets/secret-keys.ts";
import { sortedJson } from "../../src/base/json.ts";
import { seeded } from "../../src/base/random.ts";
import { operator } from "../../src/cli/operator.ts";
import { ApiStage } from "../support/api-stage.ts";
import { type Said, typed } from "../support/in-process.ts";
import { sample, seed } from "../support/long.ts";
import { postgres } from "../support/servers.ts";
import { leaves, lines, ofNoServer, ofServer, placedIn, varied, wordsOf } from "./command-lines.ts";
import { filesOf, type Known, prepared } from "./prepared.ts";
import "../support/cheap-passwords.ts";

/** Lines whose two answers are another, each with why. */
const differing: readonly { line: RegExp; why: string }[] = [
  { line: /^apply .* --author/, why: "a server puts a change down to the token's user, and says so" },
];

const stages = { store: new ApiStage(), server: new ApiStage() };
const known = {} as Record<keyof typeof stages, Known>;
const secretKeys = makeSecretKey();
let folder = "";

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "carillon-pairs-"));
  for (const [name, text] of Object.entries(filesOf)) await writeFile(join(folder, name), text);
  process.env.CARILLON_SECRET_KEYS = secretKeys;
  for (const way of ["store", "server"] as const) known[way] = await prepared(await stages[way].open());
  delete process.env.CARILLON_SECRET_KEYS;
});
afterAll(async () => {
  await stages.store.close();
  await stages.server.close();
  await rm(folder, { recursive: true, force: true });
});

const value = "sealed value of the bank";

async function by(way: keyof typeof stages, words: readonly string[]): Promise<Said> {
  const { schema, tokens } = stages[way];
  const placed = placedIn(words, { ...known[way], folder });
  const where = way === "store" ? ["--store", postgres().url, "--schema", schema] : ["--server", stages[way].urlOf()];
  const environment = { XDG_CONFIG_HOME: folder, CARILLON_TOKEN: tokens.admin, CARILLON_SECRET_KEYS: secretKeys };
  // Before what ends the options.
  const end = placed.indexOf("--");
  const line = end < 0 ? [...placed, ...where] : [...placed.slice(0, end), ...where, ...placed.slice(end)];
  return typed(value, line, environment);
}

const nearMs = 36 * 3_600_000;
/** Of this moment or near it, and not a slot's, which is at a whole minute. */
const isDrawn = (text: string) =>
  !/:00(?:\.000)?(?:Z| ?[+-]\d\d:\d\d)$/.test(text) &&
  Math.abs(Date.parse(text.replace(/^(\S+) (\S+) ([+-])/, "$1T$2$3")) - Date.now()) < nearMs;

/** JSON whose keys stand in any order. */
const inOrder = (text: string) =>
  /^[[{]/.test(text)
    ? text
        .trimEnd()
        .split("\n")
        .map((line) => sortedJson(JSON.parse(line)))
        .join("\n")
    : text;

/** Without what cannot be the same: where it was asked, who asked, when, and what was drawn. */
function masked(way: keyof typeof stages, { code, stdout, stderr }: Said) {
  const { server } = stages[way];
  const plain = (text: string) =>
    text
      .replaceAll(operator(), "<who>")
      .replace(/admin-[0-9a-f]{6} by token test/g, "<who>")
      .replace(/\b(viewer|operator|editor|admin)-[0-9a-f]{6}\b/g, "$1")
      .replaceAll(server.node, "<node>")
      .replaceAll(stages[way].urlOf(), "<server>")
      .replace(/(PostgreSQL|the server) at [^\s,.;]+(\.[^\s,.;]+)*/g, "<place>")
      .replace(/\b7[01]\d{5}\b/g, "<id>")
      .replace(/\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g, "<uuid>")
      .replace(/\bck_\d+_[\w-]{43}/g, "<key>")
      .replace(/\b[a-z0-9]{6}(-[a-z0-9]{6}){3}\b/g, "<password>")
      .replace(/\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?( ?[+-]\d\d:\d\d|Z)/g, (at) => (isDrawn(at) ? "<time>" : at))
      .replace(/("(?:late|took|seen|still|next|created|sent)Ms":)-?\d+(\.\d+)?/g, "$1<ms>")
      .replace(/\d+(\.\d+)? (ms|s|min|h|d)( \d+ (s|min|h))?\b( ago)?|\bnow\b/g, "<span>")
      .replace(/\b\d\d:\d\d:\d\d\.\d{3}\b/g, "<clock>")
      .replace(/[·░▒▓█]+/g, "<bar>")
      .replace(/ +/g, " ");
  return { code, stdout: plain(inOrder(stdout)), stderr: plain(stderr) };
}

let pairs = 0;
const differences: string[] = [];

/** @returns the exit code by the store */
async function compare(words: readonly string[]): Promise<number> {
  pairs++;
  const line = words.join(" ");
  const [store, server] = [masked("store", await by("store", words)), masked("server", await by("server", words))];
  const same = JSON.stringify(store) === JSON.stringify(server);
  const allowed = differing.find((one) => one.line.test(line));
  if (allowed && same) differences.push(`${line}: is on the list of differences (${allowed.why}), and is none`);
  if (!allowed && !same)
    differences.push(
      `carillon ${line.slice(0, 300)}\n store: ${shown(store, server)}\n server: ${shown(server, store)}`,
    );
  return store.code;
}

/** From where the two are not the same, with a little before it. */
function shown(one: Said, other: Said): string {
  const [text, beside] = [JSON.stringify(one), JSON.stringify(other)];
  let at = 0;
  while (text[at] === beside[at]) at++;
  return text.slice(Math.max(0, at - 200), at + 300);
}

describe("by the store and by a server", () => {
  it("every command has lines, or a reason why no server is asked", () => {
    const names = leaves().map(({ name }) => name);
    const asked = ofServer().map(({ name }) => name);
    expect(asked.filter((name) => !(name in lines))).toEqual([]);
    expect(Object.keys(lines).filter((name) => !asked.includes(name))).toEqual([]);
    expect(Object.keys(ofNoServer).filter((name) => !names.includes(name))).toEqual([]);
  });

  afterEach(() => {
    expect(differences.splice(0).join("\n")).toBe("");
  });

  it("lines of every command say and do the same, for programs and where they are right for people too", async () => {
    for (const [name, some] of Object.entries(lines))
      for (const line of some) {
        const words = [...name.split(" "), ...wordsOf(line)];
        const end = words.includes("--") ? words.indexOf("--") : words.length;
        if ((await compare(words.toSpliced(end, 0, "--json"))) === 0) await compare(words);
      }
  });

  it(`odd values of every argument and option are answered alike (seed ${seed})`, async () => {
    const some = sample(ofServer().flatMap(varied), 200, seeded(seed));
    for (const { name, words } of some) await compare([...name.split(" "), ...words, "--json"]);
    expect(pairs).toBeGreaterThan(400);
  });
});
