import type { BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { postgres } from "../../scheduler/test/support/servers.ts";
import { SignInProvider } from "../../scheduler/test/support/sign-in-provider.ts";
import { type House, heading, openContext, type Stage, signIn, throughProvider } from "./support/house.ts";
import { PathProxy } from "./support/path-proxy.ts";
import { openStage } from "./support/stage.mjs";

/** Tests for console.test.ts: the console at a path of a host that it shares, and in a frame of another application's page. */
export function belowAPath(house: House): void {
  const provider = new SignInProvider();
  const keeping = new PathProxy("/tools/carillon");
  const removing = new PathProxy("/tools/carillon", { removes: true });
  const [portal, stranger] = [new PathProxy("/none"), new PathProxy("/none")];
  const proxies = [keeping, removing, portal, stranger];
  let origins: string[] = [];
  let stage: Stage;

  beforeAll(async () => {
    await provider.open();
    origins = await Promise.all(proxies.map((proxy) => proxy.open()));
    const [at = "", , portalOrigin = ""] = origins;
    const { issuer, clientId, clientSecret } = provider;
    provider.serve(`${at}/tools/carillon/v1/sign-in/provided`);
    stage = await openStage({
      store: postgres().url,
      basePath: "/tools/carillon",
      frameAncestors: [portalOrigin],
      provider: {
        issuer,
        clientId,
        clientSecret,
        url: at,
        label: "the house",
        scopes: ["profile"],
        rules: [{ claim: "groups", has: "ops", role: "operator" }],
      },
    });
    await stage.people(stage.adminPassword);
    for (const proxy of proxies) proxy.target = Number(new URL(stage.url).port);
    for (const proxy of [portal, stranger])
      proxy.page = `<title>The portal</title><iframe src="${at}/tools/carillon/runs" width="1000" height="600"></iframe>`;
    provider.groups.set("ann", ["ops"]);
  });
  afterAll(async () => {
    await stage?.tower.stop();
    await Promise.all(proxies.map((proxy) => proxy.close()));
    await provider.close();
  });

  /** Opens a browser without cookies. @returns a page, and the errors and warnings that it logs */
  async function enter(): Promise<{ context: BrowserContext; page: Page; complaints: string[] }> {
    const context = await openContext(house.browser, { viewport: { width: 1_280, height: 800 } });
    const page = await context.newPage();
    const complaints: string[] = [];
    page.on("console", (message) => {
      if (["error", "warning"].includes(message.type()) && !/status of 401/.test(message.text()))
        complaints.push(message.text());
    });
    page.on("pageerror", (error) => complaints.push(String(error)));
    return { context, page, complaints };
  }

  describe.each([
    ["keeps", 0],
    ["removes", 1],
  ] as const)("at a path of a host, by a proxy that %s the path", (_, which) => {
    test("everything the browser asks for is below the path, and the other applications get no cookie", async () => {
      const [proxy, origin] = [proxies[which] as PathProxy, origins[which] as string];
      const { context, page, complaints } = await enter();
      const where = () => page.url().slice(origin.length);
      await page.goto(`${origin}/tools/carillon/runs?state=succeeded`);
      await signIn(page, "editor");
      await heading(page, "Runs");
      expect(where()).toBe("/tools/carillon/runs?state=succeeded");
      await page.locator('[data-state="live"]').waitFor();
      // A screen whose code is loaded only now, a reload of its address, and the way back.
      await page.getByRole("link", { name: "Tasks", exact: true }).first().click();
      await heading(page, "Tasks");
      expect(where()).toBe("/tools/carillon/tasks");
      await page.getByRole("link", { name: "heartbeat", exact: true }).click();
      await heading(page, "heartbeat");
      expect(where()).toBe("/tools/carillon/tasks/heartbeat");
      await page.reload();
      await heading(page, "heartbeat");
      await page.goBack();
      await heading(page, "Tasks");
      await page.goto(`${origin}/tools/carillon`);
      await page.getByRole("region", { name: "Is everything on time?" }).waitFor();
      await page.goto(`${origin}/tools/carillon/wallboard`);
      await page.locator("dd").first().waitFor();
      expect(await page.getByRole("navigation").count()).toBe(0);
      await page.goto(`${origin}/tools/carillon/tasks/none/such`);
      await page.getByText(/no such page/).waitFor();

      await page.goto(`${origin}/wiki`);
      await page.getByText("another application").waitFor();
      // The browser asks for the icon of the other application's page by itself.
      const asked = proxy.others.filter(({ path }) => path !== "/favicon.ico");
      expect(asked).toEqual([{ path: "/wiki", cookies: [] }]);
      expect((await context.cookies(`${origin}/tools/carillon/`)).map(({ name, path }) => [name, path])).toEqual([
        ["carillon", "/tools/carillon"],
        ["carillon-known", "/tools/carillon"],
      ]);
      await page.goto(`${origin}/tools/carillon/settings`);
      await page.getByRole("button", { name: "Account of editor" }).click();
      await page.getByRole("menuitem", { name: "Sign out" }).click();
      await page.getByRole("heading", { name: "Sign in to Carillon" }).waitFor();
      expect(complaints).toEqual([]);
      await context.close();
    });
  });

  describe("at a path of a host", () => {
    test("a sign-in by the provider comes back to where the address led, and a refusal to the path", async () => {
      const at = origins[0] as string;
      const { context, page } = await enter();
      await page.goto(`${at}/tools/carillon/runs?state=failed`);
      await page.getByRole("link", { name: "Sign in with the house" }).click();
      await throughProvider(page, "nobody");
      await page.getByText("no rule gives you a role here").waitFor();
      expect(page.url()).toBe(`${at}/tools/carillon/`);
      await context.clearCookies();
      await page.goto(`${at}/tools/carillon/runs?state=failed`);
      await page.getByRole("link", { name: "Sign in with the house" }).click();
      await throughProvider(page, "ann");
      await heading(page, "Runs");
      expect(page.url()).toBe(`${at}/tools/carillon/runs?state=failed`);
      await context.close();
    });

    test("commands that the page shows name the server with the path", async () => {
      const at = origins[0] as string;
      const context = await openContext(house.browser, { viewport: { width: 1_280, height: 800 } });
      await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: at });
      const page = await context.newPage();
      await page.goto(`${at}/tools/carillon/tasks`);
      await page.getByLabel("Name").fill("admin");
      await page.getByLabel("Password", { exact: true }).fill(stage.adminPassword);
      await page.keyboard.press("Enter");
      await heading(page, "Tasks");
      await page.getByRole("button", { name: /curl/ }).click();
      const copied = () => page.evaluate(() => navigator.clipboard.readText());
      await expect.poll(copied).toContain(`'${at}/tools/carillon/v1/tasks`);
      await page.goto(`${at}/tools/carillon/access?part=keys`);
      await page.getByText(`carillon worker --server ${at}/tools/carillon tasks.ts`).waitFor();
      await context.close();
    });
  });

  describe("in a frame", () => {
    test("of a page of the same site that the setting names, users sign in, and stay signed in", async () => {
      const { context, page, complaints } = await enter();
      const frame = page.frameLocator("iframe");
      const shown = () => frame.getByRole("heading", { level: 1, name: "Runs" }).waitFor();
      await page.goto(origins[2] as string);
      await signIn(frame, "operator");
      await shown();
      await frame.locator('[data-state="live"]').waitFor();
      await page.reload();
      await shown();
      expect(complaints).toEqual([]);
      await context.close();
    });

    test("a sign-in by a provider opens a tab of its own, and the frame finds it", async () => {
      const { context, page } = await enter();
      const frame = page.frameLocator("iframe");
      await page.goto(origins[2] as string);
      const opened = context.waitForEvent("page");
      await frame.getByRole("link", { name: "Sign in with the house" }).click();
      const tab = await opened;
      await throughProvider(tab, "ann");
      await tab.getByRole("button", { name: "Account of ann" }).waitFor();
      await tab.close();
      // A headless browser never hides a page, so the event of the return to the first tab is sent by hand.
      const inFrame = page.frames().find((one) => one.url().includes("/tools/carillon"));
      await inFrame?.evaluate(() => document.dispatchEvent(new Event("visibilitychange", { bubbles: true })));
      await frame.getByRole("heading", { level: 1, name: "Runs" }).waitFor();
      expect(page.url()).toBe(`${origins[2]}/`);
      await context.close();
    });

    test("of any other page, the browser shows nothing", async () => {
      const { context, page, complaints } = await enter();
      await page.goto(origins[3] as string);
      await expect.poll(() => complaints.join()).toMatch(/frame-ancestors/);
      expect(await page.frameLocator("iframe").getByRole("heading").count()).toBe(0);
      await context.close();
    });
  });
}
