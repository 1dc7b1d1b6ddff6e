/**
 * The server, the browser and one page per user and settings, which all tests of a file share. `go` navigates with the page's own router,
 * which is much faster than a page load. Tests of loading itself use `page.goto`.
 */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { freePort } from "@carillon/zookeeper/testing";
import type { Browser, BrowserContext, BrowserContextOptions, FrameLocator, Page } from "playwright-core";
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
  /** The user; "clerk", who has access to one namespace, exists only if a test has created this user. */
  as?: "admin" | "viewer" | "operator" | "editor" | "clerk";
  /** The server to visit; default: the server that all tests of the file share. */
  at?: Stage;
}

export interface Visit {
  context: BrowserContext;
  page: Page;
  /** Errors and warnings in the browser's console (including CSP violations), and uncaught errors of the page. */
  complaints: string[];
  /** Navigates to a path such as `/runs?state=failed`; resolves when the screen is shown. */
  go: (path: string) => Promise<void>;
}

export interface House {
  readonly stage: Stage;
  readonly browser: Browser;
  readonly runs: { logRun: number; longRun: number; hostileRun: number };
  /** The number of an operation that the setup has started. */
  readonly operation: number;
  /** The identity provider with which users can sign in instead of a password. */
  readonly provider: SignInProvider;
  /**
   * Returns the page of a signed-in user with these settings. Calls with the same settings return the same page, as the last test left it.
   * All pages but the last visited one are hidden, so that they send no requests.
   */
  visit: (look?: Look) => Promise<Visit>;
}

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Must be called at the top of a test file: starts the server and the browser before the first test, and stops them after the last. */
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
      const former = await visits.get(key);
      // The page is opened again if an earlier test has closed it.
      const entered = former && !former.page.isClosed() ? Promise.resolve(former) : enter(there(browser), at, look);
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

/** Creates a context with a timeout of 60 s instead of Playwright's 30 s. The timeout only ends hung waits. */
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
    // Status 401 is expected: the page's first request is refused before the sign-in.
    if (["error", "warning"].includes(message.type()) && !/status of 401/.test(message.text()))
      complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  const headers = { "content-type": "application/json", origin: stage.url };
  const data = { name: as, password: as === "admin" ? stage.adminPassword : password };
  const signedIn = await context.request.post(`${stage.url}/v1/sign-in`, { headers, data });
  expect(signedIn.status()).toBe(200);
  const go = async (path: string) => {
    // If a failed test left a dialog open, the page is loaded again, because the dialog would cover the next screen.
    const stands = page.url().startsWith(stage.url) && (await page.getByRole("dialog").count()) === 0;
    if (!stands) await page.goto(`${stage.url}${path}`);
    else await page.evaluate(walk, path);
  };
  return { context, page, complaints, go };
}

/** Calls the API with the sign-in of the visit's user. @returns the parsed answer; undefined if it has no content */
export async function ask(
  house: House,
  { context }: Visit,
  method: string,
  path: string,
  data?: object,
): Promise<unknown> {
  const headers = { origin: house.stage.url, ...(method === "GET" ? {} : { "if-match": "*" }) };
  const response = await context.request.fetch(`${house.stage.url}/v1${path}`, {
    method,
    headers,
    ...(data === undefined ? {} : { data }),
  });
  expect([path, response.ok()]).toEqual([path, true]);
  return response.status() === 204 ? undefined : response.json();
}

/** Signs in on the sign-in page that is shown, or in the dialog in front of a page. */
export async function signIn(at: Page | FrameLocator, name: string): Promise<void> {
  await at.getByLabel("Name", { exact: true }).fill(name);
  await at.getByLabel("Password", { exact: true }).fill(password);
  await at.getByRole("button", { name: "Sign in", exact: true }).click();
}

/** Signs in at the identity provider, whose page is shown. */
export async function throughProvider(page: Page, user: string): Promise<void> {
  await page.locator("input[name=login]").fill(user);
  await page.locator("input[name=password]").fill("any");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Continue" }).click();
}

/** Removes all routes after running handlers have finished; otherwise Playwright would send their requests to the server. */
export const unrouted = (page: Page): Promise<void> => page.unrouteAll({ behavior: "wait" });

/** Makes the page hidden or visible, as if the user switched to another browser tab and back. */
export const hide = (page: Page, isHidden: boolean): Promise<void> =>
  page.evaluate((hidden) => {
    Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
    const state = hidden ? "hidden" : "visible";
    Object.defineProperty(document, "visibilityState", { configurable: true, get: () => state });
    document.dispatchEvent(new Event("visibilitychange"));
  }, isHidden);

/** Navigates with the page's router; resolves when the target is shown. Playwright runs this function inside the page. */
function walk(path: string): Promise<void> {
  const { __TSR_ROUTER__: router } = globalThis as unknown as {
    __TSR_ROUTER__: { navigate: (to: { href: string }) => Promise<void> };
  };
  return router.navigate({ href: path });
}

/** Resolves once the router is idle and two frames have been painted. */
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

/**
 * Accessibility problems that axe finds in the page, one text for each violated rule.
 * @param within a selector: only these parts of the page are looked at
 */
export async function violations(page: Page, within?: string): Promise<string[]> {
  if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(axe);
  return page.evaluate(async (part) => {
    // Without `preload: false`, axe would request every style sheet again, for rules that are not used.
    const options = { resultTypes: ["violations"], preload: false };
    // biome-ignore lint/suspicious/noExplicitAny: axe is injected as text and has no types here.
    const { violations: found } = await (globalThis as any).axe.run(part ?? document, options);
    return (found as { id: string; nodes: { html: string; failureSummary: string }[] }[]).map(
      ({ id, nodes }) =>
        `${id}: ${nodes
          .slice(0, 3)
          .map(({ html, failureSummary }) => `${html.slice(0, 200)} ${failureSummary}`)
          .join(" | ")}`,
    );
  }, within);
}

/** The number of pixels by which the page is wider than the screen. */
export const overhang = (page: Page): Promise<number> =>
  page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
