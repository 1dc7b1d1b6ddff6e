import { type Case, type House, holdsCases } from "./cases.ts";
import { noSpreadLiterals, smallFunctions } from "./functions.ts";
import {
  everyTestRuns,
  expressionsWritten,
  hooksHold,
  linksByRouter,
  nothingEvaluated,
  nothingLeftOver,
  nothingSwallowed,
  timeArrives,
} from "./honesty.ts";
import { dependencyRule, importDirection, noCircles, smallFolders } from "./imports.ts";
import { logLinesListed } from "./logs.ts";
import { commentsPlain, oneWordInProse, oneWordPerIdea, smallFiles, tellingPaths } from "./names.ts";
import { testsNamed } from "./shown.ts";
import { runsMadeInOnePlace } from "./statements.ts";
import { noStopwatches } from "./stopwatches.ts";

const rooms = {
  "docs/explain/architecture.md": "```rooms\nbase  errors\ntask\nrun slots\nstore\nengine\nlibrary\n```\n",
  "docs/coordination/zookeeper.md":
    "```rooms\nbase\nclient\nrecipes/base\nrecipes/locks recipes/cache\nindex.ts\n```\n",
};
const inRooms = (houses: House[]): House[] => houses.map((files) => ({ ...files, ...rooms }));
const numbered = (folder: string, count: number): House =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`${folder}/part-${at}.ts`, ""]));

const lines = (count: number) => "\n".repeat(count);

const cases: Case[] = [
  {
    name: "dependencyRule",
    rule: dependencyRule,
    broken: inRooms([
      { "scheduler/src/task/task.ts": 'import { a } from "../run/run.ts";' },
      { "scheduler/src/task/task.ts": 'export * from "../store/store.ts";' },
      { "scheduler/src/task/task.ts": 'const a = await import("../engine/planner.ts");' },
      { "scheduler/src/task/task.ts": 'let a: import("../engine/planner.ts").A;' },
      { "scheduler/src/task/task.ts": 'import { readFileSync } from "node:fs";' },
      { "scheduler/src/task/task.ts": 'import pg from "pg";' },
      { "scheduler/src/task/task.ts": 'import { a } from "../other/a.ts";' },
      { "scheduler/src/run/run.ts": 'import type { A } from "../slots/plan.ts";' },
      { "scheduler/src/engine/planner.ts": 'import type { A } from "../store/postgres/a.ts";' },
      { "scheduler/src/other/a.ts": "" },
      { "scheduler/src/task.ts": "" },
      { "zookeeper/src/base/errors.ts": 'import type { A } from "../client/client.ts";' },
      { "zookeeper/src/client/client.ts": 'import { a } from "../recipes/base/follow.ts";' },
      { "zookeeper/src/recipes/base/follow.ts": 'import { a } from "../locks/mutex.ts";' },
      { "zookeeper/src/recipes/locks/mutex.ts": 'import type { A } from "../cache/mirror.ts";' },
      { "zookeeper/src/recipes/locks/mutex.ts": 'import { a } from "../../index.ts";' },
      { "zookeeper/src/recipes/locks/mutex.ts": 'import { a } from "../../task/task.ts";' },
      { "zookeeper/src/recipes/other/a.ts": "" },
      { "zookeeper/src/recipes/mutex.ts": "" },
      { "zookeeper/src/client.ts": "" },
    ]),
    kept: {
      ...rooms,
      "scheduler/src/task/task.ts":
        'import { a } from "../base/duration.ts"; // from "../run/a.ts"\nconst text = \'from "../run/a.ts"\';',
      "scheduler/src/engine/deep/planner.ts": 'import "../../base/clock.ts"; import "../b.ts"; import pg from "pg";',
      "scheduler/src/store/postgres.ts": 'import { a } from "./postgres/a.ts";',
      "scheduler/src/library/carillon.ts": 'import { a } from "../store/postgres/a.ts";',
      "scheduler/src/task/task.test.ts": 'import { a } from "../engine/planner.ts";',
      "zookeeper/src/client/client.ts": 'import { a } from "../base/errors.ts";',
      "zookeeper/src/recipes/locks/mutex.ts":
        'import "./line.ts"; import "../base/follow.ts"; import "../../base/errors.ts"; import net from "node:net";',
      "zookeeper/src/recipes/locks/mutex.test.ts": 'import { a } from "../cache/mirror.ts";',
      "zookeeper/src/index.ts": 'export { a } from "./recipes/locks/mutex.ts";',
    },
  },
  {
    name: "noCircles",
    rule: noCircles,
    broken: [
      { "scheduler/src/task/a.ts": 'import type { B } from "./b.ts";', "scheduler/src/task/b.ts": 'import "./a.ts";' },
      {
        "console/src/a.ts": 'import "./b.ts";',
        "console/src/b.ts": 'import "./c/c.tsx";',
        "console/src/c/c.tsx": 'export * from "../a.ts";',
      },
    ],
    kept: {
      "scheduler/src/task/a.ts": 'import "./b.ts"; import "./c.ts";',
      "scheduler/src/task/b.ts": 'import "./c.ts";',
      "scheduler/src/task/c.ts": "",
      "scheduler/src/task/c.test.ts": 'import "./c.ts";',
    },
  },
  {
    name: "smallFolders",
    rule: smallFolders,
    broken: [numbered("scheduler/src/task", 21)],
    kept: { ...numbered("scheduler/src/task", 20), ...numbered("scheduler/src/store/migrations", 21) },
  },
  {
    name: "runsMadeInOnePlace",
    rule: runsMadeInOnePlace,
    broken: [
      { "scheduler/src/store/postgres/tasks/plans.ts": "`insert into ${s}.run (id) select 1`" },
      { "scheduler/src/store/postgres/flow/spawn.ts": "`insert into ${database.schema}.run\n (id) select 1`" },
    ],
    kept: {
      "scheduler/src/store/postgres/enqueue/new-run.ts": "`insert into ${s}.run (id) select 1`",
      "scheduler/src/store/postgres/tasks/plans.ts": "`insert into ${s}.run_history (id) select 1`",
      "scheduler/src/store/postgres/tasks/plans.test.ts": "`insert into ${s}.run (id) select 1`",
    },
  },
  {
    name: "noSpreadLiterals",
    rule: noSpreadLiterals,
    broken: [
      { "scheduler/src/task/a.ts": "const a = { ...{ b: 1, c: 2 }, d };" },
      { "console/src/a.tsx": "const a = <A {...{ b, c }} />;" },
    ],
    kept: {
      "scheduler/src/task/a.ts": "const a = { ...b, ...(c ? { d } : {}) }; // ...{ e }",
      "docs/a.md": "...{ a }",
    },
  },
  {
    name: "smallFunctions",
    rule: smallFunctions,
    broken: [
      { "scheduler/src/task/a.ts": `function a() {${lines(120)}}` },
      { "zookeeper/src/a.ts": `const a = async () => {${lines(120)}};` },
      { "faults/src/a.ts": `class A {\n  get a() {${lines(120)}}\n}` },
      { "console/src/a.tsx": `export const A = () => (\n  <p>${lines(120)}</p>\n);` },
      { "bench/a.mjs": `export default function () {${lines(120)}}` },
      { "scheduler/src/task/a.ts": "function a(b, c, d, e, f, g) {}" },
      { "simulation/src/a.ts": "class A { constructor(b: 1, c: 2, d: 3, e: 4, f: 5, ...g: 6[]) {} }" },
      { "fuzz/src/a.ts": "const a = <T>(b: T, { c }: C, d = 1, e?: E, f?: F, g?: G): T => b;" },
    ],
    kept: {
      "scheduler/src/task/a.ts": `function a() {${lines(119)}}\nfunction b(c, d, e, f, { g, h, i }) {}`,
      "scheduler/src/task/b.ts": `const table = {${lines(200)}};\nclass A {${lines(200)}}`,
      "scheduler/src/task/c.ts":
        "type A = (b: 1, c: 2, d: 3, e: 4, f: 5, g: 6) => void;\n// function a(b, c, d, e, f, g) {}",
      "scheduler/src/task/d.ts": "interface A { b(c: 1, d: 2, e: 3, f: 4, g: 5, h: 6): void }",
      "scheduler/src/task/a.test.ts": `describe("a", () => {${lines(200)}});`,
      "scheduler/test/support/a.ts": `function a() {${lines(200)}}`,
      "scheduler/src/store/postgres/migrations/0001-main.ts": `export const main = () => \`${lines(200)}\`;`,
      "scripts/a.mjs": `function a() {${lines(200)}}`,
    },
  },
  {
    name: "importDirection",
    rule: importDirection,
    broken: [
      { "scheduler/src/task/task.ts": 'import "../../test/support/servers.ts";' },
      { "scheduler/src/cli/main.ts": 'import "../../../examples/demo/main.ts";' },
      { "bench/burst.ts": 'import "../examples/demo/main.ts";' },
      { "simulation/src/plan.ts": 'import "../../faults/src/line.ts";' },
      { "faults/src/line.ts": 'import "../../bench/measure/fault-proxy.ts";' },
      { "scheduler/test/cluster/a.test.ts": 'import "../../../bench/burst.ts";' },
      { "scheduler/src/cli/main.ts": 'import "../../../scripts/ready.mjs";' },
      { "zookeeper/src/recipes/locks/mutex.ts": 'import { pause } from "../../../../scheduler/src/base/clock.ts";' },
      { "examples/demo/main.ts": 'import "../../scheduler/src/task/task.ts";' },
      { "scripts/test.mjs": 'import pg from "pg";' },
      { "console/src/api/may.ts": 'import type { Role } from "../../../scheduler/src/access/access.ts";' },
      { "console/src/tasks/again.ts": 'const { edited } = await import("../../../scheduler/src/task/edits.ts");' },
    ],
    kept: {
      "scheduler/test/cluster/a.test.ts": 'import "../support/servers.ts"; import "../../src/task.ts";',
      "scheduler/src/task/task.test.ts": 'import "../../test/support/servers.ts";',
      "bench/burst.ts": 'import "./support/table.ts"; import "carillon";',
      "zookeeper/src/index.ts": 'export { Mutex } from "./recipes/locks/mutex.ts";',
      "faults/src/line.ts": 'import "../../simulation/src/history.ts"; import "../../zookeeper/test/support/proxy.ts";',
      "examples/demo/main.ts": 'import "carillon"; import "../tasks.ts";',
      "scripts/test.mjs": 'import "node:fs"; import "./ready.mjs";',
      "console/src/api/may.ts": 'import type { Role } from "carillon/access"; import "../filter.ts";',
    },
  },
  {
    name: "timeArrives",
    rule: timeArrives,
    broken: [
      "Date.now()",
      "new Date()",
      "new Date( )",
      "const f = Math.random",
      "setTimeout(f, 5)",
      "setInterval(f, 5)",
      "performance.now()",
      "process.hrtime.bigint()",
      "`at ${Date.now()}`",
      'import { scheduler } from "node:timers/promises";',
      'import * as wait from "node:timers";',
      "AbortSignal.timeout(5)",
      "const { clock = systemClock } = options",
      "random ?? systemRandom",
      "const holder = randomUUID();",
    ].map((text) => ({ "scheduler/src/engine/planner.ts": text })),
    kept: {
      "scheduler/src/engine/planner.ts":
        "const day = new Date(ms); // not Date.now()\nconst text = 'Math.random()'; const same = /Date.now/; clearTimeout(t);",
      "scheduler/src/base/clock.ts": "Date.now()",
      "scheduler/src/settings/surroundings.ts": "const clock = systemClock;",
      "scheduler/src/store/postgres/postgres.ts": "const clock = systemClock;",
      "scheduler/src/cli/screen/table.ts": "setInterval(draw, 100)",
      "scheduler/src/task/task.test.ts": "Date.now()",
    },
  },
  {
    name: "everyTestRuns",
    rule: everyTestRuns,
    broken: [
      "it.only('a', f)",
      "describe.skip('a', f)",
      "test.todo('a')",
      "test.skipIf(x)('a', f)",
      "describe.each([1]).runIf(x)",
      "it.concurrent.only('a', f)",
      "test('a', (ctx) => { ctx.skip(); })",
      "xit('a', f)",
    ].map((text) => ({ "scheduler/src/task/task.test.ts": text })),
    kept: {
      "scheduler/src/task/task.test.ts": "it('a', () => expect(overlap.skip).toBe(1)); it.each([1])('it.only(x)', f);",
    },
  },
  {
    name: "hooksHold",
    rule: hooksHold,
    broken: [
      { "scheduler/test/conformance/stage.ts": "afterEach(async () => close());" },
      { "zookeeper/test/support/servers.ts": "let a = 1;\nbeforeAll(start);" },
    ],
    kept: {
      "scheduler/test/conformance/stage.ts": "export function stage() {\n  afterEach(close);\n}",
      "scheduler/test/conformance/runs.test.ts": "beforeAll(start);",
      "scheduler/test/cli/process.ts": "beforeAll(start);",
    },
  },
  {
    name: "noStopwatches",
    rule: noStopwatches,
    broken: [
      "expect(performance.now() - began).toBeLessThan(2_000);",
      "expect(Date.now() - began, 'what').toBeLessThanOrEqual(most);",
      "const ms = performance.now() - began; expect(ms).toBeLessThan(2_000);",
      "const limit = 500; expect(Math.max(...late)).toBeLessThan(limit);",
      "expect(await elapsed(tower.stop())).toBeLessThan(4_000);",
      "await until('a', f, 5_000);",
      "await vi.waitUntil(f, { timeout: 20_000 });",
      "const most = 1_000; await expect.poll(f, { timeout: most }).toEqual([]);",
    ].map((text) => ({ "scheduler/test/conformance/a.test.ts": text })),
    kept: {
      "scheduler/test/conformance/a.test.ts":
        "expect(calls).toBeLessThan(3); expect(performance.now() - began).toBeLessThan(60_000); expect(tookMs).toBeGreaterThan(9); await until('a', f); await vi.waitUntil(f, { timeout: 60_000 });",
      "scheduler/test/timing/a.test.ts": "expect(performance.now() - began).toBeLessThan(2_000);",
    },
  },
  {
    name: "nothingLeftOver",
    rule: nothingLeftOver,
    broken: [
      { "scheduler/src/task/task.ts": "const a = 1; // TODO: more" },
      { "scheduler/src/task/task.ts": "/** FIXME */" },
      { "docs/a.md": "HACK" },
      { ".ci/run": "# XXX" },
    ],
    kept: { "scheduler/src/task/task.ts": 'const words = ["TODO", "FIXME"]; // to do', "examples/crontabs/x": "# XXX" },
  },
  {
    name: "nothingSwallowed",
    rule: nothingSwallowed,
    broken: [
      "try { a(); } catch {}",
      "try { a(); } catch (error) {\n}",
      "a().catch(() => {});",
      "a().catch((error) => undefined);",
      "a().catch(\n  () => null,\n);",
      "a().catch(noop);",
    ].map((text) => ({ "scheduler/src/task/task.ts": text })),
    kept: {
      "scheduler/src/task/task.ts":
        "try { a(); } catch {\n  // it is gone already\n}\na().catch(() => undefined); // told by b\na().catch(report); 'catch {}';",
    },
  },
  {
    name: "nothingEvaluated",
    rule: nothingEvaluated,
    broken: [
      "eval(text)",
      "const f = new Function('a', text)",
      'import { Script } from "node:vm";',
      "const page = <p dangerouslySetInnerHTML={{ __html: text }} />;",
      "place.innerHTML = text;",
    ].map((text) => ({ "console/src/runs/page.tsx": text })),
    kept: {
      "console/src/runs/page.tsx": "client.eval(script); // eval(text)\nconst f: Function = g; const why = 'eval(a)';",
      "scheduler/src/base/cut-off.ts": 'import { Script } from "node:vm";',
    },
  },
  {
    name: "expressionsWritten",
    rule: expressionsWritten,
    broken: ["new RegExp(given)", "RegExp(`^${name}`)"].map((text) => ({ "scheduler/src/run/run.ts": text })),
    kept: { "scheduler/src/run/run.ts": "const shape: RegExp = /^a+$/; // new RegExp(given)" },
  },
  {
    name: "linksByRouter",
    rule: linksByRouter,
    broken: ["<a href={run.link}>", "location.assign(link)", "location.href = link", "window.open(link)"].map(
      (text) => ({
        "console/src/runs/page.tsx": text,
      }),
    ),
    kept: { "console/src/runs/page.tsx": 'const skip = <a href="#content">on</a>; new URL(location.href);' },
  },
  {
    name: "logLinesListed",
    rule: logLinesListed,
    broken: [
      { "docs/reference/logs.md": "| warn | gone | a.ts |" },
      ...['log.warn({}, "one")', "this.#log.info({}, `two ${n}`)"].map((text) => ({ "scheduler/src/a.ts": text })),
    ],
    kept: {
      "docs/reference/logs.md": "| error | a / b | a.ts |\n| info | two …s | a.ts |",
      "scheduler/src/a.ts": "log.info({}, `two ${n}s`); o.log.error({}, x ? 'a' : 'b'); log.debug({}, 'c');",
    },
  },
  {
    name: "testsNamed",
    rule: testsNamed,
    broken: [
      "no test at all",
      "`a.test.ts › holds`\n| 1.1 | **open:** not yet |",
      "`a.test.ts › holds` `a.test.ts › held`",
      "`b.test.ts › holds`",
      "`http/a.test.ts › holds`",
      "`c.test.ts › twice`",
    ].map((text) => ({
      "docs/explain/threat-model.md": text,
      "scheduler/src/task/a.test.ts": 'it("holds", () => undefined);',
      "scheduler/src/task/c.test.ts": 'it("twice", () => undefined);',
      "scheduler/src/run/c.test.ts": 'it("twice", () => undefined);',
    })),
    kept: {
      "docs/explain/threat-model.md": "`a.test.ts › holds` and `run/c.test.ts › twice`",
      "docs/tasks/flow.md": "`b.test.ts › holds`",
      "scheduler/src/task/a.test.ts": 'it("holds", () => undefined);',
      "scheduler/src/task/c.test.ts": 'it("twice", () => undefined);',
      "scheduler/src/run/c.test.ts": "it('twice', () => undefined);",
    },
  },
  {
    name: "smallFiles",
    rule: smallFiles,
    broken: [{ "scheduler/src/task/task.ts": "\n".repeat(501) }],
    kept: { "scheduler/src/task/task.ts": "\n".repeat(500), LICENSE: "\n".repeat(900) },
  },
  {
    name: "tellingPaths",
    rule: tellingPaths,
    broken: [
      "scheduler/src/utils.ts",
      "scheduler/src/lib/a.ts",
      "bench/string-helpers.ts",
      "a/types.d.ts",
      "a/Manager.ts",
    ].map((path) => ({ [path]: "" })),
    kept: { "scheduler/src/library.ts": "", "scheduler/src/commonplace.ts": "" },
  },
  {
    name: "oneWordPerIdea",
    rule: oneWordPerIdea,
    broken: [
      "const job = 1;",
      "runJobs();",
      "class TaskManager {}",
      "interface ClaimLease {}",
      "a.jobId",
      "`${job}`",
    ].map((text) => ({ "scheduler/src/task/task.ts": text })),
    kept: {
      "scheduler/src/task/task.ts": "const CronJob = 1; jobless(); // a job\nconst text = 'job'; release(lease);",
      "bench/peer.ts": "addJob()",
    },
  },
  {
    name: "commentsPlain",
    rule: commentsPlain,
    broken: [
      { "scheduler/src/run/run.ts": "/** Of a run that ended. */" },
      { "console/src/runs/list.tsx": "const a = 1;\n  // Of these, the first." },
      { "scheduler/test/cluster/a.test.ts": "// It is called twice. Whether it succeeds\n// is unknown." },
      { "scheduler/src/run/run.ts": "/**\n * Returns the row.\n * What it lacks is null.\n */" },
      { "bench/burst.ts": "// so that nobody waits" },
      { "scripts/test.mjs": "// a server that no test knows\n// of" },
      { "scheduler/src/run/run.ts": "// waits for so many ms" },
    ],
    kept: {
      "scheduler/src/run/run.ts":
        'const text = "// Of a string"; /** The end of a run, as `nobody` sees it; "knows of". */',
      "scheduler/src/run/claim.ts": "// The pause is so long that it ends no session. See also docs/a.md.",
      "scheduler/src/task/task.ts": "/** Whether the task is paused. */",
    },
  },
  {
    name: "oneWordInProse",
    rule: oneWordInProse,
    broken: [{ "README.md": "Runs your job." }, { "docs/a.md": "Jobs" }],
    kept: {
      "README.md": "imports XXL-JOB, CronJobs and cron jobs, calls `addJob`",
      "docs/explain/glossary.md": "not job",
      "docs/guide/from-a.md": "a job",
    },
  },
];

holdsCases(cases);
