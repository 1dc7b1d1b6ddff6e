import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Pgbouncer } from "../support/pgbouncer.ts";
import { postgres } from "../support/servers.ts";
import { ask, file, here, start, url } from "./process.ts";

/** A mistake of a first-time user, and a pattern of the hint that must correct it. */
interface Mistake {
  name: string;
  files?: Record<string, string>;
  typed: () => string[];
  code: string;
  exit: number;
  /** Pattern that the error message must match; undefined: the message is not checked. */
  says?: RegExp;
  hint: RegExp;
}

const changed = (parts: Partial<URL>) => Object.assign(new URL(url), parts).href;
const head = 'import { carillon, cron } from "carillon";\nexport const tower = carillon();\n';
/** A mistake in a tasks file, which the command finds before it opens the store, so that the exit code is 2. */
const inFile = (name: string, text: string): Pick<Mistake, "files" | "typed" | "exit"> => ({
  files: { [name]: text },
  typed: () => ["dev", name, "--store", url],
  exit: 2,
});
const inStore = (store: () => string): Pick<Mistake, "typed" | "exit"> => ({
  typed: () => ["dev", "--fail-fast", "--store", store()],
  exit: 4,
});

const taken = createServer();
let pooler: Pgbouncer;
beforeAll(async () => {
  await once(taken.listen(0, "127.0.0.1"), "listening");
  pooler = await Pgbouncer.before(postgres().direct, { mode: "transaction" });
});
afterAll(async () => {
  taken.close();
  await pooler?.kill();
});

const mistakes: Mistake[] = [
  {
    name: "a command that is misspelt",
    typed: () => ["tsks", "list"],
    code: "USAGE",
    exit: 2,
    hint: /Did you mean tasks\?/,
  },
  {
    name: "an option of a command that is misspelt",
    typed: () => ["dev", "--lisen", "7373"],
    code: "USAGE",
    exit: 2,
    hint: /Did you mean --listen\?/,
  },
  {
    name: "an option of carillon() that is misspelt",
    ...inFile("own.ts", 'import { carillon } from "carillon";\nexport const tower = carillon({ shcema: "x" });\n'),
    code: "OPTION_INVALID",
    says: /there is no option "shcema"; did you mean "schema"\?/,
    hint: /The options are store, /,
  },
  {
    name: "an option within an option that is misspelt",
    ...inFile(
      "allow.ts",
      'import { carillon } from "carillon";\nexport const t = carillon({ commands: { alow: [] } });\n',
    ),
    code: "OPTION_INVALID",
    says: /there is no option "alow"; did you mean "allow"\?\n {2}at: commands\.alow/,
    hint: /The options are allow, /,
  },
  {
    name: "an option of a task that is misspelt",
    ...inFile("retries.ts", `${head}tower.task("hello", { retries: 3 }, () => 1);\n`),
    code: "TASK_INVALID",
    says: /there is no option "retries"; did you mean "retry"\?/,
    hint: /The options are description, /,
  },
  {
    name: "a handler before the options",
    ...inFile("order.js", `${head}tower.task("hello", () => 1, {});\n`),
    code: "TASK_INVALID",
    hint: /task\(name, \{\}, handler\)/,
  },
  {
    name: "a handler that is no function",
    ...inFile("called.js", `${head}tower.task("hello", {}, Promise.resolve(1));\n`),
    code: "TASK_INVALID",
    hint: /Give a function, .* task\(name, options, handler\)/,
  },
  {
    name: "a cron expression without cron()",
    ...inFile("text.js", `${head}tower.task("hello", { schedule: "0 9 * * *" }, () => 1);\n`),
    code: "SCHEDULE_INVALID",
    hint: /Use cron\("0 9 \* \* \*"\)/,
  },
  {
    name: "a file that throws",
    ...inFile("throws.ts", `${head}throw new Error("MAIL_HOST is not set");\n`),
    code: "FILE_INVALID",
    says: /MAIL_HOST is not set/,
    hint: /Look at throws\.ts:3/,
  },
  {
    name: "a file that does not exist",
    files: { "reports.ts": head },
    typed: () => ["dev", "report.ts", "--store", url],
    code: "FILE_INVALID",
    exit: 2,
    says: /report\.ts does not exist; did you mean "reports\.ts"\?/,
    hint: /Give the path of a module/,
  },
  {
    name: "TypeScript in a file called .js",
    ...inFile("typed.js", `${head}const count: number = 1;\ntower.task("hello", {}, () => count);\n`),
    code: "FILE_INVALID",
    hint: /It has TypeScript's syntax: name it typed\.ts\./,
  },
  {
    name: "a name that carillon does not export",
    ...inFile(
      "chron.ts",
      'import { carillon, chron } from "carillon";\nexport const t = carillon();\nchron("0 9 * * *");\n',
    ),
    code: "FILE_INVALID",
    hint: /"carillon" exports no "chron"; did you mean "cron"\?/,
  },
  {
    name: "a port that is in use",
    typed: () => ["dev", "--listen", String((taken.address() as AddressInfo).port), ...here()],
    code: "LISTEN_FAILED",
    exit: 1,
    hint: /Another process listens there.* give another port/,
  },
  {
    name: "a store that is not there",
    ...inStore(() => changed({ port: "1" })),
    code: "STORE_UNREACHABLE",
    hint: /Check that PostgreSQL runs and that the URL's host and port are right/,
  },
  {
    name: "a store without the password it wants",
    ...inStore(() => changed({ password: "" })),
    code: "STORE_REFUSED",
    hint: /postgres:\/\/user:password@host.* PGPASSWORD/,
  },
  {
    name: "a wrong password",
    ...inStore(() => changed({ password: "wrong" })),
    code: "STORE_REFUSED",
    hint: /Check both in the URL.* @ as %40/,
  },
  {
    name: "a database that does not exist",
    ...inStore(() => changed({ pathname: "/no_such_database" })),
    code: "STORE_REFUSED",
    says: /"no_such_database" does not exist/,
    hint: /create the database: CREATE DATABASE/,
  },
  {
    name: "a URL with options, through a pooler in transaction mode",
    ...inStore(() => `${pooler.url}?options=-c%20search_path%3Dapp`),
    code: "STORE_REFUSED",
    hint: /Take it out of the URL, and set it for the role/,
  },
];

describe("a new user's mistake gives an error with the solution", () => {
  it.each(mistakes)("$name", async ({ files = {}, typed, code, exit, says = /./, hint }) => {
    for (const [name, text] of Object.entries(files)) await file(name, text);
    const { code: ended, stderr } = await start(typed()).ended();
    const error = stderr.slice(stderr.indexOf("carillon: "));
    const more = code === "USAGE" ? "" : `  more: docs/reference/errors.md#${code.toLowerCase()}\\n`;
    expect(error).toMatch(new RegExp(`^carillon: ${code}: .+\\n(?: {2}at: .+\\n)?  hint: .+\\n${more}$`));
    expect(error).toMatch(says);
    expect(/hint: (.+)/.exec(error)?.[1]).toMatch(hint);
    expect(ended).toBe(exit);
    expect(stderr).not.toMatch(/^ {4}at /m);
  });

  it("a misspelt task name, and a file without tasks", async () => {
    await file("empty.js", head);
    const [worker, empty] = [start(["worker", "tasks.ts", ...here()]), start(["worker", "empty.js", ...here()])];
    await empty.says(/"hint":"Define one in it: tower\.task.*the file defines no task/);
    await worker.says(/worker is ready/);
    expect(await ask("tasks", "show", "setle")).toMatchObject({
      code: 3,
      stderr: expect.stringContaining('there is no task "setle"; did you mean "settle"?'),
    });
  });
});
