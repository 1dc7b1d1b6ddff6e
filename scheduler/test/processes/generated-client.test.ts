/** Tests a client that a generator makes from the OpenAPI document: it must compile in strict mode and work with a server. */
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { oazapfts } from "oazapfts";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ApiStage } from "../support/api-stage.ts";
import { root } from "../support/packed.ts";
import { said } from "../support/remote-stage.ts";

const exec = promisify(execFile);
const stage = new ApiStage();
const folder = mkdtempSync(join(tmpdir(), "carillon-generated-"));
beforeAll(async () => {
  await stage.open();
});
afterAll(async () => {
  await stage.close();
  rmSync(folder, { recursive: true, force: true });
});

const program = `
import { setTimeout as wait } from "node:timers/promises";
import * as api from "./client.js";

const [server = "", token = ""] = process.argv.slice(2);
api.defaults.baseUrl = server;
api.defaults.headers = { authorization: "Bearer " + token };

const schedule: api.Schedule = { type: "interval", count: 3, unit: "month", on: [2], at: ["06:00"] };
// @ts-expect-error: a cron has an expression.
const without: api.Schedule = { type: "cron", zone: "Europe/Berlin" };
const made = await api.createTask({ task: "greet", body: { options: { schedule, retry: 3 } } });
if (made.status !== 201) throw new Error(made.data.detail);
const edit = { task: "greet", body: { options: { description: "Greets." } } };
// @ts-expect-error: an edit says from which version it is made.
const unconditional: Parameters<typeof api.editTask>[0] = edit;
const edited = await api.editTask({ ...edit, ifMatch: '"' + made.data.version + '"' });

const begun = await api.runTask({ task: "greet", idempotencyKey: "greet-1", body: { payload: { to: "ann" } } });
if (begun.status !== 201) throw new Error(begun.data.detail);
const read = async () => {
  const answer = await api.getRun({ run: begun.data.run });
  if (answer.status !== 200) throw new Error(answer.data.detail);
  return answer.data;
};
let run = await read();
for (; run.ended === null; run = await read()) await wait(50);

const listed = await api.listTasks({ matching: "gre*", limit: 5 });
if (listed.status !== 200) throw new Error(listed.data.detail);
const again = await api.createTask({ task: "greet", body: { options: {} } });
if (again.status !== 409) throw new Error("it was made twice");
// @ts-expect-error: by this status the answer is a refusal.
const version: unknown = again.data.version;
console.log(
  JSON.stringify({
    unused: [without.type, unconditional.task, version],
    version: edited.status === 200 ? edited.data.version : edited.data.code,
    tasks: listed.data.items.map(({ name, words }) => [name, words]),
    run: [run.state, run.result],
    refusal: [again.data.code, again.data.status],
  }),
);
`;

it("lists, defines, edits, enqueues, reads a run until it ends, and returns errors by their status", async () => {
  const page = join(folder, "page.json");
  writeFileSync(page, JSON.stringify((await stage.ask("GET", "/v1/openapi.json")).body));
  const client = await oazapfts(page, { argumentStyle: "object", useUnknown: true, futureStripLegacyMethods: true });
  const compilerOptions = { strict: true, module: "nodenext", target: "es2023", outDir: "out", types: ["node"] };
  mkdirSync(join(folder, "out"));
  // The generated file imports "@oazapfts/runtime".
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
  for (const [name, text] of [
    ["client.ts", client],
    ["program.ts", program],
    ["package.json", '{ "type": "module" }'],
    ["tsconfig.json", JSON.stringify({ compilerOptions, files: ["program.ts"] })],
  ] as const)
    writeFileSync(join(folder, name), text);
  const compiler = join(root, "node_modules/.bin/tsc");
  await exec(process.execPath, [compiler, "-p", folder]).catch(({ stdout }) => expect(stdout).toBe(""));

  const key = await stage.key("greeter");
  const session = await stage.join(key);
  const work = async () => {
    const { runs } = await stage.poll(key, { session, want: 1, waitMs: 20_000 });
    for (const run of runs)
      await stage.poll(key, { session, verdicts: [said(run, { outcome: "succeeded", result: "Hello, ann" })] });
    return runs.map(({ payload }) => payload);
  };
  const [worked, { stdout }] = await Promise.all([
    work(),
    exec(process.execPath, [join(folder, "out/program.js"), stage.urlOf(), stage.tokens.editor]),
  ]);
  expect(worked).toEqual([{ to: "ann" }]);
  expect(JSON.parse(stdout)).toEqual({
    unused: ["cron", "greet", null],
    version: 2,
    tasks: [["greet", expect.stringContaining("3 months")]],
    run: ["succeeded", "Hello, ann"],
    refusal: ["TASK_NAME_TAKEN", 409],
  });
});
