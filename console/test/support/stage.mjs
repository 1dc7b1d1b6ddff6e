/**
 * The fixture for browser tests and for the screenshots of the README: a server on a PostgreSQL store, tasks of every kind, and functions
 * that create runs and users.
 */
import { randomBytes } from "node:crypto";
import { carillon, cron, every, manual } from "carillon";
import { z } from "zod";

/** Hostile inputs: a task name like a script URL, and a text with markup and a direction override, which a page must show as text. */
export const hostileName = "javascript:alert/@evil/../..";
export const hostileText = '<script>window.hacked=1</script><a href="javascript:window.hacked=1">here</a>\u202egnp.exe';
export const silentLog = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};

export const password = "seven lamps by the quay 9";

/**
 * @param {{ store: string, name?: string, schema?: string, listen?: string, bare?: boolean, worker?: boolean, hostile?: boolean,
 *   provider?: import("carillon").CarillonOptions["provider"],
 *   basePath?: string, frameAncestors?: string[],
 *   requireSecondFactor?: import("carillon").CarillonOptions["requireSecondFactor"],
 *   tasks?: (tower: import("carillon").Carillon) => void }} options
 *   bare: if true, no tasks are defined but those of `tasks`; worker: if false, the server runs no tasks; hostile: if false, the hostile
 *   inputs are omitted
 */
export async function openStage({
  store,
  name = "atlas",
  schema,
  listen = "127.0.0.1:0",
  bare = false,
  worker = true,
  hostile = true,
  provider,
  basePath,
  frameAncestors,
  requireSecondFactor,
  tasks,
}) {
  const place = schema ?? `console_${randomBytes(5).toString("hex")}`;
  const first = `nine herons at ${place}`;
  const options = {
    store,
    schema: place,
    listen,
    log: silentLog,
    handleSignals: false,
    labels: { zone: "eu-1", rack: "b4" },
  };
  // Nothing listens on this port, so alarm messages fail and the page shows that they will be retried.
  const alarms = { channels: { ops: { webhook: "http://127.0.0.1:9/carillon", secret: "between the two of them" } } };
  const tower = carillon({
    ...options,
    name,
    alarms,
    adminPassword: first,
    concurrency: 40,
    drain: "500ms",
    worker,
    secretKeys: randomBytes(32).toString("base64"),
    ...(provider ? { provider } : {}),
    ...(basePath ? { basePath } : {}),
    ...(frameAncestors ? { frameAncestors } : {}),
    ...(requireSecondFactor ? { requireSecondFactor } : {}),
  });
  if (!bare) furnish(tower, hostile);
  tasks?.(tower);
  await tower.start();
  const url = `http://${tower.listening}`;
  return {
    tower,
    url,
    schema: place,
    /** The password of the user "admin", whom the server's first start creates. */
    adminPassword: first,
    /** Creates the users viewer, operator and editor, all with the same password. @param {string} adminPassword */
    people: (adminPassword) => people(url, adminPassword),
    /** Starts an operation that reruns ended runs of send-invoices. @param {string} adminPassword @returns the operation's number */
    operate: (adminPassword) => operate(url, adminPassword),
    /** Creates runs with various outcomes. */
    live: () => live(tower, hostile),
  };
}

/** @param {import("carillon").Carillon} tower @param {boolean} hostile */
function furnish(tower, hostile) {
  /** @param {number} ms @param {AbortSignal} signal */
  const take = (ms, signal) =>
    new Promise((resolve, reject) => {
      const end = () => {
        clearTimeout(timer);
        reject(signal.reason);
      };
      const timer = setTimeout(() => {
        signal.removeEventListener("abort", end);
        resolve(undefined);
      }, ms);
      signal.addEventListener("abort", end);
    });
  tower.task("heartbeat", { schedule: every("2s"), description: "Says that the tower stands." }, async (run) => {
    run.log.info("ping", { from: "atlas" });
  });
  tower.task(
    "settle-accounts",
    {
      schedule: cron("0 0 0 L * ?", { zone: "Asia/Shanghai" }),
      timeout: "2h",
      overlap: "queue",
      priority: 8,
      retry: { attempts: 5, backoff: "exponential", delay: "10s" },
      slotPayload: { ledger: "all" },
      description: "Closes every ledger of the month, at midnight where the bank is.",
    },
    async (run, payload) => {
      run.progress({ done: 1, of: 2 });
      run.log.info("settling", { payload });
      return {
        ledgers: [
          { name: "eu", entries: 12_442, balanced: true },
          { name: "us", entries: 8_117, balanced: true },
        ],
      };
    },
  );
  tower.task("nightly-report", { schedule: cron("30 2 * * *", { zone: "Europe/Berlin" }) }, async (run) => {
    await take(20 + (run.id % 60), run.signal);
  });
  tower.task(
    "send-invoices",
    { schedule: cron("0 9 * * 1-5", { zone: "Europe/London" }), overlap: "skip" },
    async (run) => {
      await take(5 + (run.id % 40), run.signal);
      return { sent: run.id % 97 };
    },
  );
  tower.task(
    "sync-inventory",
    { schedule: cron("*/15 * * * *", { zone: "UTC" }), retry: { attempts: 2, delay: "50ms" } },
    async (run) => {
      await take(4 + (run.id % 30), run.signal);
      if (run.id % 4 === 0) throw new Error(`warehouse ${run.id % 3} answered 503 after 3 tries`);
      return { items: 1_204 };
    },
  );
  tower.task("import-feed", { schedule: manual }, async (run, payload) => {
    const { lines = 40, holdMs = 0 } = /** @type {{ lines?: number, holdMs?: number }} */ (payload ?? {});
    run.log.info("\u001b[1mimporting\u001b[0m the feed", { source: "s3://feeds/products.csv" });
    for (let line = 1; line <= lines; line++) {
      if (line % 11 === 0) run.log.warn(`\u001b[33mslow\u001b[0m part ${line}`, { tookMs: 1_200 + line });
      else if (line % 17 === 0)
        run.log.error(`\u001b[31;1mrejected\u001b[0m row ${line}: price is negative`, { row: line });
      else run.log.info(`part ${line} of ${lines} \u001b[32mok\u001b[0m`);
      run.progress({ part: line, of: lines });
      if (holdMs > 0) await take(holdMs / lines, run.signal);
    }
    return { imported: lines, skipped: ["sku-11", "sku-17"] };
  });
  const refund = z.object({
    customer: z.string().min(3).describe("As the shop knows them."),
    cents: z.int().min(1),
    currency: z.enum(["EUR", "USD", "CNY"]).default("EUR"),
    tell: z.boolean().default(true).describe("Writes to the customer."),
    mail: z.email().optional(),
    lines: z.array(z.object({ sku: z.string(), count: z.int().default(1) })).default([]),
    notes: z.record(z.string(), z.string()).optional(),
  });
  tower.task("refund", { payload: refund, description: "Gives money back." }, async (_, payload) => payload);
  tower.task("warm-cache", { schedule: every("10m") }, async (run) => take(3, run.signal));
  tower.task(
    "purge-sessions",
    { schedule: cron("0 4 * * 0", { zone: "America/New_York" }), misfire: "skip" },
    async () => undefined,
  );
  tower.task(
    "export-ledger",
    { schedule: cron("0 6 1 * *", { zone: "UTC" }), onWorkerLost: "ask" },
    async () => undefined,
  );
  if (!hostile) return;
  tower.task(hostileName, { schedule: manual, description: hostileText }, async (run) => {
    run.log.error(hostileText, { [hostileName]: hostileText });
    throw new Error(hostileText);
  });
}

/** @param {import("carillon").Carillon} tower @param {boolean} hostile */
async function live(tower, hostile) {
  for (let round = 0; round < 24; round++) {
    await tower.enqueue("sync-inventory", { warehouse: round % 3 });
    if (round % 2 === 0) await tower.enqueue("send-invoices", { month: "2026-10", customer: 1_000 + round });
    if (round % 3 === 0) await tower.enqueue("nightly-report", null);
  }
  await tower.enqueue("settle-accounts", { ledger: "eu", month: "2026-10" });
  await tower.enqueue("warm-cache", null);
  const log = await tower.enqueue("import-feed", { lines: 120 });
  const long = await tower.enqueue("import-feed", { lines: 1_600 });
  const text = { [hostileName]: hostileText, html: "<b>bold</b>" };
  const odd = hostile ? await tower.enqueue(hostileName, text) : undefined;
  await tower.enqueue("import-feed", { lines: 3 }, { in: "3h", key: "later" });
  return { logRun: log.runId, longRun: long.runId, hostileRun: odd?.runId ?? 0 };
}

/** @param {string} url @param {string} adminPassword */
async function asAdmin(url, adminPassword) {
  /** @param {string} path @param {unknown} body @param {string} [cookie] */
  const post = async (path, body, cookie) => {
    const headers = { "content-type": "application/json", origin: url, ...(cookie ? { cookie } : {}) };
    const response = await fetch(`${url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
    if (!response.ok) throw new Error(`${path} answered ${response.status}: ${await response.text()}`);
    return response;
  };
  const signedIn = await post("/v1/sign-in", { name: "admin", password: adminPassword });
  const cookie = (signedIn.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
  return (/** @type {string} */ path, /** @type {unknown} */ body) => post(path, body, cookie);
}

/** @param {string} url @param {string} adminPassword */
async function people(url, adminPassword) {
  const post = await asAdmin(url, adminPassword);
  for (const role of ["viewer", "operator", "editor"])
    await post("/v1/users", { name: role, password, role, reason: "staff" });
}

/** @param {string} url @param {string} adminPassword @returns {Promise<number>} */
async function operate(url, adminPassword) {
  const post = await asAdmin(url, adminPassword);
  const filter = { task: "send-invoices", states: ["succeeded", "failed"] };
  const begun = await post("/v1/operations", { kind: "rerun", filter, reason: "the printer is mended" });
  return /** @type {{ operation: number }} */ (await begun.json()).operation;
}
