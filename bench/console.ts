/**
 * How fast is the console with many tasks, runs and log lines?
 *
 *   npm run bench -- console         10,000 tasks, 10,000,000 ended runs, a log of 1,000,000 lines; medians of 3 runs
 *   … --quick                        200 tasks, 20,000 runs, a log of 20,000 lines, one run
 *   … --tasks N, --finished N, --log N, --runs N, --only paint,pages,interact,scroll,log,lighthouse, --json
 *   … --keep SCHEMA                  uses this schema: fills it, or uses what an earlier call has filled in, and does not drop it
 *
 * A real node plans and executes all tasks (about five runs a second with 10,000 tasks) and serves the built console. Chromium visits it,
 * headless and without a graphics card. The parts:
 *
 * - paint: the time until the overview shows its figures, with an empty cache and on a second visit.
 * - pages: for each page the time from its request until its first content is visible, with the scripts in the cache, as
 *   `first_content_ms_…`, and the slowest answer of the API until then, as `slowest_answer_ms_…`. A figure `…_errors` is the time until the
 *   page's errors by reason are visible, which stand below the first content.
 * - interact: the time from an input to the next frame by the browser's Event Timing, the highest as `interaction_ms`; `…_shown_ms` is the
 *   time until the result is visible, typing included.
 * - scroll: the time per frame while the task list is scrolled from the first task to the last, 300 pixels a frame.
 * - log: the time until the first lines of the log, its last lines, and a searched line between them are visible.
 * - lighthouse: Lighthouse's scores for the sign-in page and the overview.
 */
import { parseArgs } from "node:util";
import { carillon } from "carillon";
import pg from "pg";
import { chromium } from "playwright-core";
import { fill, logRunOf } from "./console/fill.ts";
import { audit } from "./console/lighthouse.ts";
import { firstContent, pagesOf, type Shown } from "./console/pages.ts";
import { nameOf } from "./console/server.ts";
import { interact, type Place, paint, readLog, scroll } from "./console/visit.ts";
import { makeToken } from "./lists/token.ts";
import { type Figures, rounded } from "./measure/figures.ts";
import { freePort } from "./measure/port.ts";
import { type Aim, machine, newReport, print } from "./measure/report.ts";
import { serverTitle } from "./measure/server.ts";
import { serverUrl } from "./measure/services.ts";
import { Subject } from "./measure/subject.ts";

const parts = ["paint", "pages", "interact", "scroll", "log", "lighthouse"];
const { values } = parseArgs({
  options: {
    tasks: { type: "string" },
    finished: { type: "string" },
    log: { type: "string" },
    runs: { type: "string" },
    only: { type: "string", default: parts.join(",") },
    keep: { type: "string" },
    quick: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
    "no-peers": { type: "boolean", default: false },
  },
});
const whole = (name: "tasks" | "finished" | "log" | "runs", usual: number, quick: number): number => {
  const value = Number(values[name] ?? (values.quick ? quick : usual));
  if (!Number.isInteger(value) || value < 1) throw new Error(`--${name} is a whole number above 0`);
  return value;
};
const tasks = whole("tasks", 10_000, 200);
const finished = whole("finished", 10_000_000, 20_000);
const log = whole("log", 1_000_000, 20_000);
const runs = whole("runs", 3, 1);
const only = values.only.split(",").filter((part) => part !== "lighthouse" || !values["no-peers"]);
if (only.some((part) => !parts.includes(part))) throw new Error(`--only takes names of ${parts.join(", ")}`);
const schema = values.keep ?? `bench_console_${process.pid}`;
if (!/^[a-z][a-z0-9_]{0,40}$/.test(schema)) throw new Error("--keep takes a name of lower-case letters, digits and _");

const interactions = 5;
const aims: Aim[] = [
  ...["overview_shown_ms", "overview_largest_paint_ms"].map((figure) => ({ figure, atMost: 1_000 })),
  ...pagesOf({ operation: 0, calendar: "", failedRun: 0, okRun: 0, fingerprint: "" }).map(({ name }) => ({
    figure: `first_content_ms_${name}`,
    atMost: 500,
  })),
  { figure: "interaction_ms", atMost: 100 },
  { figure: "scroll_frame_ms_p95", atMost: 17.5 },
  ...["log_first_ms", "log_end_ms", "log_find_ms"].map((figure) => ({ figure, atMost: 1_000 })),
  ...["sign_in", "overview"].flatMap((screen) => [
    { figure: `lighthouse_performance_${screen}`, atLeast: 95 },
    { figure: `lighthouse_accessibility_${screen}`, atLeast: 100 },
    { figure: `lighthouse_best_practices_${screen}`, atLeast: 100 },
  ]),
];
const store = serverUrl("postgres");
const sql = new pg.Client({ connectionString: store });
await sql.connect();
const report = newReport("console", aims, machine(await serverTitle(sql)));
const port = await freePort();
const debugPort = await freePort();
const url = `http://127.0.0.1:${port}`;
const subject: { process?: Subject } = {};
// Lighthouse opens its tabs in this persistent context. The other measurements create a fresh context for each figure.
const executablePath = process.env.CARILLON_TEST_CHROMIUM;
if (!executablePath) throw new Error("CARILLON_TEST_CHROMIUM is not set: run it as `npm run bench -- console`");
const kept = await chromium.launchPersistentContext("", {
  executablePath,
  headless: true,
  args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", `--remote-debugging-port=${debugPort}`],
});
try {
  if (!values.json) console.error(`filling ${schema}`);
  const began = performance.now();
  await fill(sql, store, schema, { tasks, finished, log });
  if (!values.json) console.error(`filled in ${Math.round((performance.now() - began) / 1_000)} s`);
  subject.process = new Subject(new URL("./console/server.js", import.meta.url), { url: store, schema, port, tasks });
  await subject.process.started(120_000);
  const cookie = await signIn();
  const shown = only.includes("pages") ? await furnish(cookie) : undefined;
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
  try {
    for (let run = 1; run <= runs; run++) {
      const figures = await measure(browser, { url, cookie }, shown);
      report.carillon.push(figures);
      const told = Object.entries(figures).map(([name, value]) => `${name} ${rounded(value)}`);
      if (!values.json) console.error(`${run}/${runs}: ${told.join(", ")}`);
    }
  } finally {
    await browser.close();
  }
  await subject.process.stop();
} finally {
  subject.process?.kill();
  await kept.close();
  if (values.keep === undefined) await sql.query(`drop schema if exists "${schema}" cascade`);
  await sql.end();
}
report.notes = [...new Set(report.notes)];
print(report, values.json);

async function measure(browser: Parameters<typeof paint>[0], place: Place, shown: Shown | undefined): Promise<Figures> {
  const figures: Figures = {};
  if (only.includes("paint")) Object.assign(figures, await paint(browser, place));
  if (shown) Object.assign(figures, await firstContent(browser, place, shown, report.notes));
  if (only.includes("interact")) Object.assign(figures, await interact(browser, place, interactions));
  if (only.includes("scroll")) Object.assign(figures, await scroll(browser, place, tasks));
  if (only.includes("log")) Object.assign(figures, await readLog(browser, place, logRunOf(finished), log));
  if (only.includes("lighthouse")) {
    // The audit needs a visitor without an earlier sign-in: otherwise the page requests the user, is refused, and the browser logs an
    // error.
    await kept.clearCookies();
    const page = await kept.newPage();
    await page.goto(`${url}/livez`);
    await page.evaluate("localStorage.clear()");
    await page.close();
    Object.assign(figures, await audit(url, debugPort, "sign_in", report.notes));
    const [name = "", value = ""] = place.cookie.split("=");
    await kept.addCookies([{ name, value, url }]);
    Object.assign(figures, await audit(url, debugPort, "overview", report.notes));
  }
  return figures;
}

/** Creates a user with the admin role and signs in. @returns the cookie */
async function signIn(): Promise<string> {
  const name = `bench-${process.pid}-${Date.now() % 100_000}`;
  const tower = carillon({ store, schema, scheduler: false, worker: false, handleSignals: false });
  const token = await makeToken(tower, `${name}-token`, "admin");
  await tower.stop();
  const password = "long enough for anybody 7";
  const post = async (path: string, body: object, headers: Record<string, string>) => {
    const response = await fetch(`${url}${path}`, {
      method: "POST",
      body: JSON.stringify(body),
      headers: { "content-type": "application/json", ...headers },
    });
    if (!response.ok) throw new Error(`${path} answered ${response.status}: ${await response.text()}`);
    return response;
  };
  const user = { name, password, role: "admin", reason: "bench" };
  await post("/v1/users", user, { authorization: `Bearer ${token}` });
  const signedIn = await post("/v1/sign-in", { name, password }, { origin: url });
  return (signedIn.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
}

/** Creates an operation and a calendar, and finds a failed run, for the pages that show such items. */
async function furnish(cookie: string): Promise<Shown> {
  const ask = async (method: string, path: string, body?: object) => {
    const response = await fetch(`${url}/v1${path}`, {
      method,
      headers: {
        cookie,
        origin: url,
        "content-type": "application/json",
        ...(method === "PUT" ? { "if-match": "*" } : {}),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const answer = await response.text();
    if (!response.ok) throw new Error(`${path} answered ${response.status}: ${answer}`);
    return JSON.parse(answer);
  };
  const calendar = "bench-days";
  await ask("PUT", `/calendars/${calendar}`, { zone: "UTC", weekend: [0, 6], holidays: ["2030-01-01"] });
  const filter = { matching: nameOf(tasks - 1) };
  const { operation } = await ask("POST", "/operations", { kind: "resume", filter, reason: "bench-operation" });
  const { groups } = await ask("GET", "/dead-letters/groups");
  const { lastRun: failedRun, fingerprint } = groups[0];
  return { operation, calendar, failedRun, okRun: logRunOf(finished) - 1, fingerprint };
}
