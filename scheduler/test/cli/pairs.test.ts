/**
 * Runs every command both against the store and against a server, and compares exit code, output, error code, path and hint. Differences
 * are allowed only where `differing` gives the reason. Takes about a minute: some 700 lines run both ways, and each opens the store once.
 */

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
import { until } from "../support/store-stage.ts";
import { lines, ofNoServer } from "./command-lines.ts";
import { leaves, ofServer, placedIn, varied, wordsOf } from "./leaves.ts";
import { filesOf, type Known, prepared } from "./prepared.ts";

/** Lines whose output differs between store and server, each with the reason. */
const differing: readonly { line: RegExp; why: string }[] = [
  { line: /^apply .* --author/, why: "a server puts a change down to the token's user, and says so" },
  { line: /^audit (?:export|verify)(?: --json)?$/, why: "the rows of two clusters have other hashes" },
];

const stages = { store: new ApiStage(), server: new ApiStage() };
const known = {} as Record<keyof typeof stages, Known>;
const secretKeys = makeSecretKey();
let folder = "";

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "carillon-pairs-"));
  for (const [name, text] of Object.entries(filesOf)) await writeFile(join(folder, name), text);
  process.env.CARILLON_SECRET_KEYS = secretKeys;
  for (const way of ["store", "server"] as const) {
    known[way] = await prepared(await stages[way].open());
    await ended(stages[way]);
  }
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
  // The options go before `--`, because the words after it are not parsed as options.
  const end = placed.indexOf("--");
  const line = end < 0 ? [...placed, ...where] : [...placed.slice(0, end), ...where, ...placed.slice(end)];
  return typed(value, line, environment);
}

const nearMs = 36 * 3_600_000;
const tokenMs = 90 * 86_400_000;
/**
 * True for a time that depends on when the command ran: a time near the current time, or near a token's expiry. Times of slots do not
 * count, because they are whole hours.
 */
function isDrawn(text: string): boolean {
  if (/:00:00(?:\.000)?(?:Z| ?[+-]\d\d:\d\d)$/.test(text)) return false;
  const fromNowMs = Date.parse(text.replace(/^(\S+) (\S+) ([+-])/, "$1T$2$3")) - Date.now();
  return Math.abs(fromNowMs) < nearMs || Math.abs(fromNowMs - tokenMs) < nearMs;
}

/** Sorts the keys of JSON output, because their order may differ. Other text is returned as it is. */
const inOrder = (text: string) =>
  /^[[{]/.test(text)
    ? text
        .trimEnd()
        .split("\n")
        .map((line) => sortedJson(JSON.parse(line)))
        .join("\n")
    : text;

/** Returns the part of the output of `top` that does not change from minute to minute. */
function lasting(text: string): string {
  const { leader, members, failing, tasks } = JSON.parse(text);
  const rows = tasks.map(
    ({ running: _, overdue: __, lateMs: ___, last: ____, ...row }: Record<string, unknown>) => row,
  );
  return sortedJson({ leader, members, failing, tasks: rows.map(sortedJson).sort() });
}

/** Returns the output with everything masked that differs between two calls: target, author, times, and generated ids and secrets. */
function masked(way: keyof typeof stages, { code, stdout, stderr }: Said, words: readonly string[]) {
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
      .replace(/\bc[kt]_\d+_[\w-]{43}/g, "<key>")
      .replace(/\b[a-z0-9]{6}(-[a-z0-9]{6}){3}\b/g, "<password>")
      .replace(/\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?( ?[+-]\d\d:\d\d|Z)/g, (at) => (isDrawn(at) ? "<time>" : at))
      .replace(/("(?:late|took|seen|still|next|created|sent)Ms":)-?\d+(\.\d+)?/g, "$1<ms>")
      .replace(/\d+(\.\d+)? (ms|s|min|h|d)( \d+ (s|min|h))?\b( ago)?|\bnow\b/g, "<span>")
      .replace(/\b\d\d:\d\d:\d\d\.\d{3}\b/g, "<clock>")
      .replace(/ (?:before|after) it was due/g, " beside its time")
      .replace(/[·░▒▓█]+/g, "<bar>")
      .replace(/ +/g, " ");
  const ordered = isTop(words) && stdout !== "" ? lasting(stdout) : inOrder(stdout);
  return { code, stdout: plain(ordered), stderr: plain(stderr) };
}

const isTop = ([name]: readonly string[]) => name === "top";
/**
 * Commands that select their tasks or runs by a filter. They start an operation that the leader carries out in the background, so the test
 * waits for its end before the next line.
 */
const begins = /^(?:tasks (?:pause|resume|backfill)|runs (?:cancel|rerun)|dead (?:redrive|dismiss)) /;

const ended = (stage: ApiStage) =>
  until(
    "operations to end",
    async () => (await stage.rows("select from $s.operation where ended_ms is null")).length === 0,
  );

/** For this many valid lines of each command, the output without `--json` is compared as well. */
const readByPeople = 2;

/** The number of invalid lines of each command that are compared by default. */
const oddOfEach = 4;

let pairs = 0;
const differences: string[] = [];

/** Runs a line against the store and against the server, and records a difference. @returns the exit code of the run against the store */
async function compare(words: readonly string[]): Promise<number> {
  pairs++;
  const line = words.join(" ");
  const [store, server] = [
    masked("store", await by("store", words), words),
    masked("server", await by("server", words), words),
  ];
  if (begins.test(line)) for (const stage of Object.values(stages)) await ended(stage);
  const same = JSON.stringify(store) === JSON.stringify(server);
  const allowed = differing.find((one) => one.line.test(line));
  if (allowed && same) differences.push(`${line}: is on the list of differences (${allowed.why}), and is none`);
  if (!allowed && !same)
    differences.push(
      `carillon ${line.slice(0, 300)}\n store: ${shown(store, server)}\n server: ${shown(server, store)}`,
    );
  return store.code;
}

/** Returns the text of `one` from shortly before its first difference from `other`. */
function shown(one: Said, other: Said): string {
  const [text, beside] = [JSON.stringify(one), JSON.stringify(other)];
  let at = 0;
  while (text[at] === beside[at]) at++;
  return text.slice(Math.max(0, at - 200), at + 300);
}

describe("with --store and with --server", () => {
  it("every command has test lines, or a reason why it does not use a server", () => {
    const names = leaves().map(({ name }) => name);
    const asked = ofServer().map(({ name }) => name);
    expect(asked.filter((name) => !(name in lines))).toEqual([]);
    expect(Object.keys(lines).filter((name) => !asked.includes(name))).toEqual([]);
    expect(Object.keys(ofNoServer).filter((name) => !names.includes(name))).toEqual([]);
  });

  afterEach(() => {
    expect(differences.splice(0).join("\n")).toBe("");
  });

  it.each(Object.entries(ofNoServer).filter(([, why]) => why.includes("STORE_NEEDED")))(
    "carillon %s needs the store, and reports that",
    async (name) => {
      const needed = leaves().find((leaf) => leaf.name === name)?.command.registeredArguments ?? [];
      const words = needed.filter(({ required }) => required).map((argument) => argument.name());
      const { code, stderr } = await by("server", [...name.split(" "), ...words, "--json"]);
      expect([code, JSON.parse(stderr)]).toMatchObject([4, { code: "STORE_NEEDED" }]);
    },
  );

  it.each([
    ["tasks run ..", { code: "TASK_INVALID" }],
    [`tasks show ${"n".repeat(250)}`, { code: "TASK_INVALID" }],
    ["calendars remove .", { code: "CALENDAR_INVALID" }],
    [`tasks pause order --reason ${"r".repeat(1_001)}`, { code: "OPTION_INVALID", path: "reason" }],
    ["dead list --fingerprint=", { code: "OPTION_INVALID", path: "fingerprint" }],
    ["runs show 0", { code: "USAGE" }],
    ['tasks edit nightly --set retry={"attempt":5}', { code: "TASK_INVALID", path: "retry.attempt" }],
    ['tasks run nobody --payload ["\\u0000"]', { code: "PAYLOAD_NOT_JSON" }],
    ["users create two --in a --in a", { code: "OPTION_INVALID" }],
  ])("%s is refused by the command itself, before any query", async (line, refusal) => {
    for (const way of ["store", "server"] as const) {
      const { code, stderr } = await by(way, [...wordsOf(line), "--json"]);
      expect([code, JSON.parse(stderr)]).toMatchObject([2, refusal]);
    }
  });

  // The lines run one after another, because a line may change data that later lines read.
  it.each(Object.entries(lines))(
    "carillon %s: its lines print and do the same, in JSON and as text",
    async (name, some) => {
      let read = 0;
      for (const line of some) {
        const words = [...name.split(" "), ...wordsOf(line)];
        const end = words.includes("--") ? words.indexOf("--") : words.length;
        const code = await compare(words.toSpliced(end, 0, "--json"));
        if (code === 0 && !isTop(words) && ++read <= readByPeople) await compare(words);
      }
    },
  );

  const random = seeded(seed);
  it.each(ofServer())(
    `carillon $name: odd values of arguments and options give the same answers (seed ${seed})`,
    async (leaf) => {
      for (const words of sample(varied(leaf), oddOfEach, random)) await compare([...words, "--json"]);
    },
  );

  it("enough lines are compared", () => {
    expect(pairs).toBeGreaterThan(400);
  });
});
