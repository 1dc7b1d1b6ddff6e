/**
 * One stage, one browser and a page per visitor, for all tests of a file. A page is loaded once; from screen to screen it uses the page's
 * own router, as a person does, which costs a tenth of a load. If a load itself is tested, use `page.goto`.
 */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { freePort } from "@carillon/zookeeper/testing";
import type { Browser, BrowserContext, BrowserContextOptions, Page } from "playwright-core";
import { afterAll, beforeAll, expect } from "vitest";
import { postgres } from "../../../scheduler/test/support/servers.ts";
import { SignInProvider } from "../../../scheduler/test/support/sign-in-provider.ts";
import { openBrowser } from "./browser.mjs";
import { openStage, password } from "./stage.mjs";

export type Stage = Awaited<ReturnType<typeof openStage>>;

export interface Look {
  width?: number;
  height?: number;
  preferences?: object;
  /** The test that needs a user with a namespace makes `clerk`. */
  as?: "admin" | "viewer" | "operator" | "editor" | "clerk";
  /** A server other than the file's own. */
  at?: Stage;
}

export interface Visit {
  context: BrowserContext;
  page: Page;
  /** The warnings of its console, and the refusals of its policy. */
  complaints: string[];
  /** To an address of the server's, such as `/runs?state=failed`: returns when its screen stands. */
  go: (path: string) => Promise<void>;
}

export interface House {
  readonly stage: Stage;
  readonly browser: Browser;
  readonly runs: { logRun: number; longRun: number; hostileRun: number };
  /** The id of an operation that was begun. */
  readonly operation: number;
  /** The provider that signs people in, beside passwords. */
  readonly provider: SignInProvider;
  /**
   * The page of a signed-in user with these settings: the same one each time, where the last test left it. Until then it was hidden behind
   * the page that was visited last, so that it sent its server no requests: of ten pages at once one is at work.
   */
  visit: (look?: Look) => Promise<Visit>;
}

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Call it at the head of a file: it is furnished before the first test, and torn down after the last. */
export function openHouse(): House {
  let stage: Stage | undefined;
  let browser: Browser | undefined;
  let runs = { logRun: 0, longRun: 0, hostileRun: 0 };
  let operation = 0;
  const provider = new SignInProvider();
  const visits = new Map<string, Promise<Visit>>();
  let seen: Page | undefined;
  const there = <T>(thing: T | undefined): T => {
    if (thing === undefined) throw new Error("the house stands from the first test on");
    return thing;
  };
  beforeAll(async () => {
    const [{ issuer, clientId, clientSecret }, port] = await Promise.all([provider.open(), freePort()]);
    const url = `http://127.0.0.1:${port}`;
    const settings = {
      issuer,
      clientId,
      clientSecret,
      url,
      label: "the house",
      scopes: ["profile"],
      rules: [{ claim: "groups", has: "ops", role: "operator" as const }],
    };
    provider.serve(`${url}/v1/sign-in/provided`);
    [stage, browser] = await Promise.all([
      openStage({ store: postgres().url, listen: `127.0.0.1:${port}`, provider: settings }),
      openBrowser(),
    ]);
    await stage.people(stage.adminPassword);
    runs = await stage.live();
    operation = await stage.operate(stage.adminPassword);
  });
  afterAll(async () => {
    await browser?.close();
    await stage?.tower.stop();
    await provider.close();
  });
  return {
    provider,
    get operation() {
      return operation;
    },
    get stage() {
      return there(stage);
    },
    get browser() {
      return there(browser);
    },
    get runs() {
      return runs;
    },
    async visit({ at = there(stage), ...look } = {}) {
      const key = JSON.stringify([at.url, look]);
      const entered = visits.get(key) ?? enter(there(browser), at, look);
      visits.set(key, entered);
      const visit = await entered;
      if (visit.page !== seen) {
        if (seen && !seen.isClosed()) await hide(seen, true);
        await hide(visit.page, false);
        seen = visit.page;
      }
      return visit;
    },
  };
}

/** A wait's limit only ends a hang; it does not measure how fast a page is: playwright's own is 30 s. */
export async function openContext(browser: Browser, options: BrowserContextOptions): Promise<BrowserContext> {
  const context = await browser.newContext(options);
  context.setDefaultTimeout(60_000);
  return context;
}

async function enter(
  browser: Browser,
  stage: Stage,
  { width = 1_280, height = 800, preferences = {}, as = "admin" }: Look,
): Promise<Visit> {
  const context = await openContext(browser, { viewport: { width, height }, timezoneId: "Europe/Berlin" });
  const wanted = { language: "en", scheme: "light", ...preferences };
  await context.addInitScript(
    (kept) => localStorage.getItem("carillon.preferences") ?? localStorage.setItem("carillon.preferences", kept),
    JSON.stringify(wanted),
  );
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on("console", (message) => {
    // Before the sign-in the first request is refused: that is how the page learns that it must show the form.
    if (["error", "warning"].includes(message.type()) && !/status of 401/.test(message.text()))
      complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  const headers = { "content-type": "application/json", origin: stage.url };
  const data = { name: as, password: as === "admin" ? stage.adminPassword : password };
  const signedIn = await context.request.post(`${stage.url}/v1/sign-in`, { headers, data });
  expect(signedIn.status()).toBe(200);
  const go = async (path: string) => {
    // A dialog that a failed test left open would lie over the next one's screen.
    const stands = page.url().startsWith(stage.url) && (await page.getByRole("dialog").count()) === 0;
    if (!stands) await page.goto(`${stage.url}${path}`);
    else await page.evaluate(walk, path);
  };
  return { context, page, complaints, go };
}

/** Removes all routes. It waits for handlers at work: the request of one that answered later would have been sent on. */
export const unrouted = (page: Page): Promise<void> => page.unrouteAll({ behavior: "wait" });

/** This simulates another tab of the browser that covers the page, or goes: the page cannot distinguish the two. */
export const hide = (page: Page, isHidden: boolean): Promise<void> =>
  page.evaluate((hidden) => {
    Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
    const state = hidden ? "hidden" : "visible";
    Object.defineProperty(document, "visibilityState", { configurable: true, get: () => state });
    document.dispatchEvent(new Event("visibilitychange"));
  }, isHidden);

/** Runs in the page: the router reports when its target is shown. */
function walk(path: string): Promise<void> {
  const { __TSR_ROUTER__: router } = globalThis as unknown as {
    __TSR_ROUTER__: { navigate: (to: { href: string }) => Promise<void> };
  };
  return router.navigate({ href: path });
}

/** Resolves once the router is idle and its screen is painted. */
export const settled = (page: Page): Promise<void> =>
  page.evaluate(async () => {
    const { __TSR_ROUTER__: router } = globalThis as unknown as { __TSR_ROUTER__: { state: { status: string } } };
    const painted = () => new Promise((resolve) => requestAnimationFrame(resolve));
    do {
      await painted();
      await painted();
    } while (router.state.status !== "idle");
  });

export const heading = (page: Page, name: string | RegExp) => page.getByRole("heading", { level: 1, name }).waitFor();

/** Problems for a screen reader or a keyboard. */
export async function violations(page: Page): Promise<string[]> {
  if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(axe);
  return page.evaluate(async () => {
    // Its preload requests every style sheet again, for rules that are off.
    const options = { resultTypes: ["violations"], preload: false };
    // biome-ignore lint/suspicious/noExplicitAny: it comes as a text.
    const { violations: found } = await (globalThis as any).axe.run(document, options);
    return (found as { id: string; nodes: { html: string; failureSummary: string }[] }[]).map(
      ({ id, nodes }) =>
        `${id}: ${nodes
          .slice(0, 3)
          .map(({ html, failureSummary }) => `${html.slice(0, 200)} ${failureSummary}`)
          .join(" | ")}`,
    );
  });
}

/** The number of pixels by which the page is wider than the screen. */
export const overhang = (page: Page): Promise<number> =>
  page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
