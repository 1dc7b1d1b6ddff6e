/** Good inputs that the repository has. */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** Of the repository: this file runs where it was written, and where it is compiled to. */
const root = (() => {
  let folder = fileURLToPath(new URL(".", import.meta.url));
  while (!existsSync(join(folder, "examples/imports"))) folder = join(folder, "..");
  return folder;
})();

export const example = (path: string): string => readFileSync(join(root, "examples", path), "utf8");

/** Every file below a folder of the examples. */
export function examplesBelow(path: string): { path: string; text: string }[] {
  const folder = join(root, "examples", path);
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .map((name) => ({ path: join(path, name), whole: join(folder, name) }))
    .filter(({ whole }) => statSync(whole).isFile())
    .map(({ path: name, whole }) => ({ path: name, text: readFileSync(whole, "utf8") }));
}

export const crons: readonly string[] = [
  ...["* * * * *", "*/5 * * * *", "0 9 * * MON-FRI", "0 0 0 L * ?", "15 10 ? * 6L", "0 0 12 1/5 * ?", "0 0 1,15 * 3"],
  ...["30 2 29 2 *", "0 0 13 * FRI", "0 12 15W * *", "0 12 LW * *", "0 12 L-3 * *", "0 12 L-3W * *", "0 12 * * 2#3"],
  ...[
    "0 0 12 * * ? 2030",
    "0 0 0 1 JAN ? 2025-2199/5",
    "@daily",
    "@hourly",
    "@yearly",
    "23 0-20/2 * * *",
    "5,10,15 * * * *",
  ],
  ...[
    "59 59 23 31 12 ? *",
    "*/7 */11 */13 * * *",
    "0 22 * * 1-5",
    "0 0-23/6 * JAN,JUN,dec SUN",
    "10-50/10 8-18 1-7 */3 1-5",
  ],
  ...["0 30 9 ? * MON#1,FRIL", "0 0 */2 1-15/3,L 2-12/2 *", "* * * * 7", "0 0 1W,15W * ?", "1-59/2 * * * *"],
];

export const zones: readonly string[] = [
  ...[
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Asia/Shanghai",
    "Africa/Cairo",
    "Australia/Lord_Howe",
    "Asia/Kathmandu",
  ],
  ...[
    "Pacific/Apia",
    "America/Sao_Paulo",
    "Africa/Casablanca",
    "Europe/Dublin",
    "Antarctica/Troll",
    "Etc/GMT+5",
    "Asia/Gaza",
  ],
];

export const phrases: readonly string[] = [
  ...[
    "every 5 minutes",
    "every 5 minutes from 09:00 to 17:59 on weekdays",
    "at 09:30 on Mondays and Fridays, Europe/Berlin",
  ],
  ...["daily at 5 pm", "at 00:00 on the last day of the month", "at 08:00 on the first Monday of the month", "hourly"],
  ...["at 12:00 on the weekday nearest to day 15 of the month", "on every 2nd day from day 1 of the month at 06:00"],
  ...["at 00:00 on 1 January", "at minute 15 of every hour", "every 2 hours from 08:00 to 20:00 on weekends"],
  ...["at 09:00 on day 13 of the month or on Fridays", "at 10:00 on the 3rd day before the last day of the month"],
  ...["at second 30 of every minute", "every 15 seconds", "monthly on day 1 at 03:00", "quarterly", "yearly", "weekly"],
  ...[
    "at 23:59:59 on the last Friday of the month in 2030",
    "at 06:00, 12:00 and 18:00 in June to August",
    "at noon",
    "at midnight",
  ],
];

export const phraseWords: readonly string[] = [
  ...[
    "every",
    "at",
    "on",
    "in",
    "from",
    "to",
    "and",
    "or",
    "only",
    "the",
    "of",
    "day",
    "days",
    "weekday",
    "weekdays",
    "weekend",
  ],
  ...[
    "month",
    "year",
    "hour",
    "hours",
    "minute",
    "minutes",
    "second",
    "seconds",
    "last",
    "first",
    "2nd",
    "3rd",
    "5th",
    "31st",
  ],
  ...[
    "Monday",
    "Fridays",
    "Sun",
    "January",
    "feb",
    "December",
    "09:00",
    "5",
    "0",
    "15",
    "31",
    "2030",
    "pm",
    "am",
    "noon",
    "5pm",
  ],
  ...[
    "midnight",
    "daily",
    "hourly",
    "weekly",
    "monthly",
    "yearly",
    "quarterly",
    "nearest",
    "before",
    "other",
    ",",
    "UTC",
  ],
  ...["Europe/Berlin", "a", "week", "12:30:15", "24:00", "through", "until", "except", "&", "-", "half", "past"],
];

export const durations: readonly string[] = [
  "250ms",
  "15m",
  "1h 30m",
  "1.5d",
  "2w",
  "90s",
  "0.001s",
  "1d2h3m4s5ms",
  "0s",
  "9007199254740991ms",
];

export const tasks: readonly Record<string, unknown>[] = [
  { schedule: "0 2 * * *" },
  {
    description: "every night",
    ...{
      group: "reports",
      schedule: { cron: "0 2 * * *", zone: "Europe/Berlin", gap: "skip", overlap: "last", jitter: "5m" },
    },
    ...{
      timeout: "2h",
      retry: { attempts: 5, backoff: "exponential", delay: "2s", maxDelay: "5m", jitter: 0.5 },
      priority: 7,
    },
    ...{
      overlap: { allow: 3 },
      misfire: { policy: "all", after: "1m", cap: 5, perSecond: 2 },
      onWorkerLost: "fail",
      grace: "5s",
    },
    ...{ slotPayload: { ledger: "eu", rows: [1, 2, { a: null }] }, history: "failures" },
  },
  { schedule: { every: "5m", mode: "delay" }, overlap: "queue", misfire: "skip", retry: 3 },
  {
    schedule: { every: "1h", anchor: "2030-01-01T00:10:00Z", jitter: "10m" },
    route: "round-robin",
    labels: { zone: "eu-1" },
  },
  { schedule: { at: "2027-01-01T00:00:00Z" }, route: { pin: "node-1" }, limit: { perKey: 1, perWorker: 4 } },
  { schedule: "manual", rate: { limit: 10, per: "1m", key: true }, route: { hash: "key" } },
  { command: { argv: ["/usr/bin/backup", "--all"], env: { A: "b" }, cwd: "/srv", stdin: "x\n", user: "backup" } },
  {
    http: {
      ...{
        url: "https://example.com/hook?x=1",
        method: "PUT",
        headers: { "x-a": "b" },
        body: { a: 1 },
        timeout: "10s",
      },
      ...{ okStatuses: [200, "3xx"], retryStatuses: [429, "5xx"], redirects: 3 },
    },
  },
  { after: { tasks: ["load", "clean"], on: "any" } },
  { after: "load", calendar: { name: "banks", on: "working-days", otherwise: "next" } },
  {
    ...{ calendar: "banks", route: { shards: 8 } },
    blackout: [
      { from: "22:00", to: "06:00", zone: "America/New_York", days: ["sat", "sun"], then: "shift" },
      { from: "2027-12-24T00:00:00Z", to: "2027-12-27T00:00:00Z", then: "skip" },
    ],
  },
];

export const taskWords: readonly string[] = [
  ...[
    "schedule",
    "group",
    "timeout",
    "retry",
    "overlap",
    "misfire",
    "onWorkerLost",
    "grace",
    "priority",
    "slotPayload",
  ],
  ...[
    "description",
    "route",
    "labels",
    "limit",
    "rate",
    "after",
    "calendar",
    "blackout",
    "http",
    "command",
    "history",
    "cron",
  ],
  ...[
    "every",
    "at",
    "zone",
    "attempts",
    "backoff",
    "delay",
    "maxDelay",
    "jitter",
    "type",
    "expression",
    "everyMs",
    "atMs",
    "allow",
  ],
];
