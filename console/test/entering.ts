import { describe, expect, test } from "vitest";
import { type House, heading, openContext, throughProvider, violations } from "./support/house.ts";
import { password } from "./support/stage.mjs";

/** Tests for console.test.ts: how the server serves the page, and how users sign in. */
export function servingAndSignIn(house: House): void {
  describe("serving", () => {
    const get = (path: string, headers: Record<string, string> = {}) => fetch(`${house.stage.url}${path}`, { headers });
    const html = { accept: "text/html,application/xhtml+xml" };

    test("gives one page for every address, under a strict policy with a nonce of its own", async () => {
      const [one, two] = await Promise.all([get("/", html), get("/runs/12?find=x", html)]);
      expect([one.status, two.status]).toEqual([200, 200]);
      const policies = [one, two].map(({ headers }) => headers.get("content-security-policy") ?? "");
      for (const policy of policies) {
        expect(policy).toContain("default-src 'none'; script-src 'self';");
        expect(policy).not.toContain("unsafe");
      }
      expect(policies[0]).not.toBe(policies[1]);
      const nonce = /'nonce-([^']+)'/.exec(policies[0] ?? "")?.[1];
      expect(await one.text()).toContain(`nonce="${nonce}"`);
      expect(one.headers.get("cache-control")).toBe("no-store");
      expect(one.headers.get("x-frame-options")).toBe("DENY");
    });

    test("leaves the API's own addresses and programs' questions to the API", async () => {
      const asked = await Promise.all([
        get("/v1/nothing", html),
        get("/nothing"),
        get("/assets/nothing.js", html),
        get("/assets/..%2findex.html", html),
        fetch(`${house.stage.url}/tasks`, { method: "POST", headers: html }),
      ]);
      for (const response of asked) {
        expect([response.url, response.status]).toEqual([response.url, 404]);
        expect(response.headers.get("content-type")).toContain("application/problem+json");
      }
    });

    test("keeps its files for good, packed: its own script below 260 kB, and with those of the overview below 320 kB", async () => {
      const page = await (await get("/", html)).text();
      const files = [...page.matchAll(/(?:src|href)="(\/assets\/[^"]+\.js)"/g)].map(([, file]) => file as string);
      expect(files.length).toBeGreaterThan(0);
      const own = /<script[^>]* src="([^"]+)"/.exec(page)?.[1];
      const gzipped = { own: 0, all: 0 };
      for (const file of files) {
        const response = await get(file, { "accept-encoding": "gzip" });
        const isLarge = (await response.clone().arrayBuffer()).byteLength >= 1_024;
        expect([file, response.headers.get("content-encoding")]).toEqual([file, isLarge ? "gzip" : null]);
        expect(response.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
        const length = Number(response.headers.get("content-length"));
        gzipped.all += length;
        if (file === own) gzipped.own += length;
      }
      expect(gzipped.own).toBeGreaterThan(50_000);
      expect(gzipped.own).toBeLessThanOrEqual(260_000);
      expect(gzipped.all).toBeLessThanOrEqual(320_000);
      const [brotli, plain] = await Promise.all(
        ["br", "identity"].map((encoding) =>
          get(files.find((file) => /index-/.test(file)) as string, { "accept-encoding": encoding }),
        ),
      );
      expect(brotli?.headers.get("content-encoding")).toBe("br");
      expect(plain?.headers.get("content-encoding")).toBeNull();
      expect(await brotli?.text()).toBe(await plain?.text());
    });
  });

  describe("somebody", () => {
    test("signs in, and comes to where the address led", async () => {
      const context = await openContext(house.browser, { viewport: { width: 1_280, height: 800 } });
      const page = await context.newPage();
      await page.goto(`${house.stage.url}/runs?state=failed`);
      await page.getByRole("heading", { name: "Sign in to Carillon" }).waitFor();
      expect(await violations(page)).toEqual([]);
      await page.getByLabel("Name").fill("viewer");
      await page.getByLabel("Password", { exact: true }).fill("wrong");
      await page.keyboard.press("Enter");
      await page.getByText("The name or the password is wrong.").waitFor();
      await page.getByLabel("Password", { exact: true }).fill(password);
      await page.keyboard.press("Enter");
      await heading(page, "Runs");
      expect(new URL(page.url()).search).toBe("?state=failed");
      // A viewer sees no buttons for acts that the server would refuse.
      await page.goto(`${house.stage.url}/tasks/nightly-report`);
      await page.getByRole("tab", { name: "Overview" }).waitFor();
      expect(await page.getByRole("button", { name: "Run now" }).count()).toBe(0);
      await page.getByRole("button", { name: "Account of viewer" }).click();
      await page.getByRole("menuitem", { name: "Sign out" }).click();
      await page.getByRole("heading", { name: "Sign in to Carillon" }).waitFor();
      await context.close();
    });

    test("who was handed a password chooses another first; fields hide it and tell password managers, and the browser keeps none", async () => {
      const { url, adminPassword } = house.stage;
      const context = await openContext(house.browser, { viewport: { width: 1_280, height: 800 } });
      const post = (path: string, data: object) =>
        context.request.post(`${url}${path}`, { headers: { origin: url }, data });
      await post("/v1/sign-in", { name: "admin", password: adminPassword });
      const made = await post("/v1/users", { name: "nora", password, role: "viewer", temporary: true });
      expect(made.status()).toBe(201);
      await context.clearCookies();
      const page = await context.newPage();
      await page.goto(`${url}/runs?state=failed`);
      await page.getByLabel("Name").fill("nora");
      const given = page.getByLabel("Password", { exact: true });
      expect(await given.getAttribute("type")).toBe("password");
      expect(await given.getAttribute("autocomplete")).toBe("current-password");
      await given.fill(password);
      await page.keyboard.press("Enter");
      await page.getByRole("heading", { name: "Choose your own password" }).waitFor();
      expect(await violations(page)).toEqual([]);
      const next = page.getByLabel("New password");
      expect(await next.getAttribute("type")).toBe("password");
      expect(await next.getAttribute("autocomplete")).toBe("new-password");
      await page.getByLabel("Present password").fill(password);
      await next.fill(password);
      await page.keyboard.press("Enter");
      await page.getByText("the one that was handed over").waitFor();
      await next.fill("nine otters at dusk");
      await page.keyboard.press("Enter");
      await heading(page, "Runs");
      expect(new URL(page.url()).search).toBe("?state=failed");
      const kept = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }]));
      for (const secret of [password, "nine otters at dusk", ...(await context.cookies()).map(({ value }) => value)])
        expect(kept).not.toContain(secret);
      expect(await page.evaluate(() => document.cookie)).toBe("");
      await context.close();
    });

    test("signs in by a provider, is told why not, and comes to where the address led", async () => {
      const context = await openContext(house.browser, { viewport: { width: 1_280, height: 800 } });
      const page = await context.newPage();
      const through = async (user: string) => {
        await page.getByRole("link", { name: "Sign in with the house" }).click();
        await throughProvider(page, user);
      };
      await page.goto(`${house.stage.url}/runs?state=failed`);
      await through("nobody");
      await page.getByText("no rule gives you a role here").waitFor();
      expect(await violations(page)).toEqual([]);
      expect(new URL(page.url()).search).toBe("");
      await context.clearCookies();
      house.provider.groups.set("ann", ["ops"]);
      await page.goto(`${house.stage.url}/runs?state=failed`);
      await through("ann");
      await heading(page, "Runs");
      expect(new URL(page.url()).search).toBe("?state=failed");
      await page.getByRole("button", { name: "Account of ann" }).waitFor();
      await page.goto(`${house.stage.url}/settings`);
      await page.getByText("Where you are signed in").first().waitFor();
      expect(await page.getByRole("heading", { name: "Second factor" }).count(), "the provider asks for one").toBe(0);
      // Text from the address must not be shown as if it came from the server.
      await context.clearCookies();
      await page.goto(`${house.stage.url}/?refused=PAY_ME&why=send-money`);
      await page.getByText("The sign-in came to nothing. Try again.").waitFor();
      await context.close();
    });

    test("who chose to look only sees no button either", async () => {
      const { context, page, go } = await house.visit({ preferences: { readOnly: true } });
      await go("/tasks");
      await page.getByRole("link", { name: "heartbeat" }).waitFor();
      expect(await page.getByRole("checkbox").count()).toBe(0);
      await context.close();
    });
  });
}
