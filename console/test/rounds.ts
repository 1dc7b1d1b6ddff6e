import type { BrowserContext, Route } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type House, openContext } from "./support/house.ts";

/** The most files that a page requests before its first content: its own and those of its screen. */
const filesMost = 40;

/** A page, and a part of its text that comes from the store. */
interface Visited {
  path: string;
  /** The reads that its first content is made of, each as often as it is sent with other parameters. */
  reads: string[];
  shows: string | RegExp;
  /** True if the graph's code, which few visitors need, is requested beside the reads instead of beside the page's code. */
  graph?: true;
}

/**
 * The pages, except the audit and the first part of access, whose reads wait for the role of the user. LOG, LONG and OPERATION stand for
 * the numbers of two runs and an operation of the fixture.
 */
const task = "/v1/tasks/sync-inventory";
const pages: Visited[] = [
  {
    path: "/",
    reads: ["/v1/runs", "/v1/workers", "/v1/groups", "/v1/coming", "/v1/cluster"],
    shows: /atlas leads/,
  },
  {
    path: "/wallboard",
    reads: [
      ...Array<string>(4).fill("/v1/runs"),
      ...["dead-letters/groups", "coming", "groups", "workers", "alarms", "cluster"].map((read) => `/v1/${read}`),
    ],
    shows: "Fires next",
  },
  { path: "/timeline", reads: ["/v1/timeline"], shows: "Fullest minutes" },
  { path: "/tasks", reads: ["/v1/tasks"], shows: "nightly-report" },
  { path: "/tasks/sync-inventory", reads: [task, `${task}/upcoming`, "/v1/recent-runs"], shows: "Late, p95" },
  { path: "/tasks/sync-inventory?part=runs", reads: [task, "/v1/runs"], shows: "answered 503" },
  { path: "/tasks/sync-inventory?part=flow", reads: ["/v1/flow"], shows: 'after: "load"', graph: true },
  {
    path: "/tasks/sync-inventory?part=statistics",
    reads: [task, `${task}/statistics`],
    shows: /Success|No figures/,
  },
  { path: "/tasks/sync-inventory?part=versions", reads: [task, `${task}/versions`], shows: "present" },
  { path: "/flow", reads: ["/v1/flow"], shows: "No task comes after another" },
  { path: "/runs?state=failed", reads: ["/v1/runs"], shows: "answered 503" },
  { path: "/runs/LOG", reads: ["/v1/runs/LOG"], shows: "import-feed" },
  {
    path: "/runs/LOG/compare?with=LONG",
    reads: ["/v1/runs/LOG", "/v1/runs/LONG"],
    shows: "Attempt",
  },
  { path: "/dead-letters", reads: ["/v1/dead-letters/groups"], shows: "warehouse" },
  { path: "/operations", reads: ["/v1/operations"], shows: "the printer is mended" },
  {
    path: "/operations/OPERATION",
    reads: ["/v1/operations/OPERATION"],
    shows: "the printer is mended",
  },
  { path: "/alarms", reads: ["/v1/alarms", "/v1/alarm-rules"], shows: "ops" },
  { path: "/workers", reads: ["/v1/workers", "/v1/groups"], shows: "rack=b4" },
  { path: "/nodes", reads: ["/v1/cluster", "/v1/nodes", "/v1/terms"], shows: "leads" },
  { path: "/calendars", reads: ["/v1/calendars"], shows: "carillon calendars set" },
  { path: "/access?part=users", reads: ["/v1/users"], shows: "operator" },
  { path: "/access?part=tokens", reads: ["/v1/tokens"], shows: "ct_" },
  { path: "/settings", reads: ["/v1/me/sign-ins"], shows: "Where you are signed in" },
];

/** Tests for console.test.ts: what a page waits for until its first content. */
export function roundsOfRequests(house: House): void {
  describe("a page that is loaded by a user who has signed in before", () => {
    let context: BrowserContext;
    beforeAll(async () => {
      const { url, adminPassword } = house.stage;
      context = await openContext(house.browser, { viewport: { width: 1_440, height: 900 } });
      const data = { name: "admin", password: adminPassword };
      await context.request.post(`${url}/v1/sign-in`, { headers: { origin: url }, data });
      const before = await context.newPage();
      await before.goto(`${url}/settings`);
      await before.getByText("Where you are signed in").first().waitFor();
      await before.close();
    });
    afterAll(() => context.close());

    test.each(pages)(
      "requests all code of $path beside the page's own, then all reads of its first content at once",
      async (visited) => {
        const { shows, graph = false } = visited;
        const { logRun, longRun } = house.runs;
        const numbered = (text: string) =>
          text
            .replace("LOG", String(logRun))
            .replace("LONG", String(longRun))
            .replace("OPERATION", String(house.operation));
        const path = numbered(visited.path);
        const page = await context.newPage();
        const held = new Map<Route, string>();
        let isReleased = false;
        await page.route("**/v1/**", (route) => {
          // The answers to requests of a later round never arrive.
          if (!isReleased) held.set(route, new URL(route.request().url()).pathname);
        });
        const answer = await page.goto(`${house.stage.url}${path}`, { waitUntil: "commit" });
        const asked = () => [...held.values()];
        const isAsked = (read: string, at: number, all: string[]) =>
          asked().filter((one) => one === read).length >= all.slice(0, at + 1).filter((one) => one === read).length;
        const needed = ["/v1/me", ...visited.reads.map(numbered)];
        await expect.poll(() => needed.filter((...read) => !isAsked(...read)), { timeout: 60_000 }).toEqual([]);
        isReleased = true;
        for (const route of held.keys()) await route.continue();
        await page.getByText(shows).first().waitFor();
        // Only now: the browser lists a request once it has ended.
        const named = [...((await answer?.text()) ?? "").matchAll(/\/(assets\/[^"]+\.(?:js|css))"/g)].map(
          ([, file]) => file,
        );
        const code = await page.evaluate(() => {
          const all = performance.getEntriesByType("resource");
          const firstRead = Math.min(
            ...all.filter(({ name }) => name.includes("/v1/")).map(({ startTime }) => startTime),
          );
          return all
            .filter(({ name, startTime }) => /\/assets\/.*\.(js|css)$/.test(name) && startTime < firstRead)
            .map(({ name }) => name.slice(name.indexOf("assets/")));
        });
        if (!graph) expect(code.filter((file) => !named.includes(file))).toEqual([]);
        expect(named.length).toBeLessThanOrEqual(filesMost);
        await page.close();
      },
    );

    test("requests again a style sheet of its screen that could not be loaded, and is shown with it", async () => {
      const page = await context.newPage();
      const sheet = /\/assets\/nodes-[^/]+\.css$/;
      let requests = 0;
      await page.route(sheet, (route) => (requests++ === 0 ? route.abort() : route.continue()));
      await page.goto(`${house.stage.url}/nodes`);
      await page.getByText("leads").first().waitFor();
      const applied = await page.evaluate(
        (name) => [...document.styleSheets].filter(({ href }) => new RegExp(name).test(href ?? "")).length,
        sheet.source,
      );
      expect([requests, applied]).toEqual([2, 1]);
      await page.close();
    });
  });
}
