/**
 * Measures each page of the console: the time from the request of the page until its first content is visible, and the slowest answer of
 * the API that the page waited for until then, which is the part of server and store.
 */
import type { Browser } from "playwright-core";
import { type Figures, rounded } from "../measure/figures.ts";
import { nameOf } from "./server.ts";
import { open, type Place } from "./visit.ts";

/** A page: its figure is `first_content_ms_NAME`. `shows` is a part of its text that comes from the store, or of its empty state. */
interface Visited {
  name: string;
  path: string;
  shows: string;
}

/** Items that the visited pages show: an operation, a calendar, a failed run with the fingerprint of its error, and a successful run. */
export interface Shown {
  operation: number;
  calendar: string;
  failedRun: number;
  okRun: number;
  fingerprint: string;
}

/** This task has failed runs and statistics, and is the first of a chain of tasks. */
const task = nameOf(0);

export const pagesOf = ({ operation, calendar, failedRun, okRun, fingerprint }: Shown): Visited[] => [
  { name: "overview", path: "/", shows: "bench-" },
  { name: "overview_errors", path: "/", shows: "warehouse #" },
  { name: "wallboard", path: "/wallboard", shows: "bench-" },
  { name: "timeline", path: "/timeline", shows: "Fullest minutes" },
  { name: "tasks", path: "/tasks", shows: "bench-00003" },
  { name: "task", path: `/tasks/${task}`, shows: "Late, p95" },
  { name: "task_errors", path: `/tasks/${task}`, shows: "warehouse #" },
  { name: "task_runs", path: `/tasks/${task}?part=runs`, shows: "answered 503" },
  { name: "task_flow", path: `/tasks/${task}?part=flow`, shows: nameOf(1) },
  { name: "task_statistics", path: `/tasks/${task}?part=statistics`, shows: "Success" },
  { name: "task_versions", path: `/tasks/${task}?part=versions`, shows: "present" },
  { name: "flow", path: "/flow", shows: nameOf(1) },
  { name: "runs", path: "/runs", shows: "bench-" },
  { name: "runs_failed", path: "/runs?state=failed", shows: "answered 503" },
  { name: "run", path: `/runs/${failedRun}`, shows: "answered 503" },
  { name: "compare", path: `/runs/${failedRun}/compare?with=${okRun}`, shows: "answered 503" },
  { name: "compare_previous", path: `/runs/${okRun}/compare`, shows: "Side by side" },
  { name: "dead_letters", path: "/dead-letters", shows: "warehouse #" },
  { name: "dead_letter", path: `/dead-letters?fingerprint=${fingerprint}`, shows: "Fingerprint" },
  { name: "operations", path: "/operations", shows: "bench-operation" },
  { name: "operation", path: `/operations/${operation}`, shows: "bench-operation" },
  { name: "alarms", path: "/alarms", shows: "Rules" },
  { name: "workers", path: "/workers", shows: "team-0" },
  { name: "nodes", path: "/nodes", shows: "leads" },
  { name: "calendars", path: "/calendars", shows: calendar },
  { name: "calendar", path: `/calendars/${calendar}`, shows: "present" },
  { name: "audit", path: "/audit", shows: "bench-operation" },
  { name: "access", path: "/access", shows: "admin" },
  { name: "access_tokens", path: "/access?part=tokens", shows: "-token" },
  { name: "access_keys", path: "/access?part=keys", shows: "No worker keys" },
  { name: "access_secrets", path: "/access?part=secrets", shows: "No secrets" },
  { name: "access_quotas", path: "/access?part=quotas", shows: "No quotas" },
  { name: "access_sign_in", path: "/access?part=sign-in", shows: "password" },
  { name: "settings", path: "/settings", shows: "Where you are signed in" },
];

/**
 * Loads each page anew in a browser that has the scripts in its cache, as on any visit but the first.
 * @param missing receives a line for each page whose content did not appear within the time limit; its figure is left out
 */
export async function firstContent(browser: Browser, place: Place, shown: Shown, missing: string[]): Promise<Figures> {
  const figures: Figures = {};
  const page = await open(browser, place);
  await page.goto(`${place.url}/settings`);
  for (const { name, path, shows } of pagesOf(shown)) {
    // Each page is visited twice, and the second visit is measured: the first one puts the page's own script into the cache, and the
    // store's connections plan its statements.
    for (const visit of ["first", "again"]) {
      await page.goto(`${place.url}${path}`, { waitUntil: "commit" });
      const ms = await page.evaluate(`bench.shows(${JSON.stringify(shows)}, 20_000)`);
      if (typeof ms !== "number") {
        missing.push(`${name}: "${shows}" did not appear on ${path}`);
        break;
      }
      if (visit === "first") continue;
      figures[`first_content_ms_${name}`] = rounded(ms);
      figures[`slowest_answer_ms_${name}`] = rounded(Number(await page.evaluate("bench.slowestAnswer()")));
    }
  }
  await page.context().close();
  return figures;
}
