import pg from "pg";
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { postgres } from "../../scheduler/test/support/servers.ts";
import { until } from "../../scheduler/test/support/store-stage.ts";
import { codeOf, wrongCodeOf } from "../../scheduler/test/support/totp.ts";
import { type House, heading, openContext, overhang, violations } from "./support/house.ts";
import { openStage, password } from "./support/stage.mjs";

const recoveryCode = /^[a-z2-9]{6}(?:-[a-z2-9]{6}){3}$/;

/** Tests for console.test.ts: second factors, which are codes of an authenticator app in addition to the password. */
export function secondFactors(house: House): void {
  /** Creates a user, and a page in which the user is not signed in yet. */
  const visitor = async (name: string, width = 1_280) => {
    const { url, adminPassword } = house.stage;
    const context = await openContext(house.browser, { viewport: { width, height: 800 } });
    const post = (path: string, data: object) =>
      context.request.post(`${url}${path}`, { headers: { origin: url }, data });
    await post("/v1/sign-in", { name: "admin", password: adminPassword });
    expect((await post("/v1/users", { name, password, role: "viewer" })).status()).toBe(201);
    await context.clearCookies();
    return { context, page: await context.newPage(), url };
  };
  const showPassword = async (page: Page, name: string, typed = password) => {
    await page.getByLabel("Name").fill(name);
    await page.getByLabel("Password", { exact: true }).fill(typed);
    await page.keyboard.press("Enter");
  };
  const showCode = async (page: Page, code: string) => {
    await page.getByLabel("Code", { exact: true }).fill(code);
    await page.keyboard.press("Enter");
  };
  const sound = async (page: Page) => {
    expect(await violations(page)).toEqual([]);
    expect(await overhang(page)).toBe(0);
  };
  /**
   * Adds a second factor, from the key to the recovery codes, which are shown until the user confirms that they are saved.
   * @returns the key and the recovery codes
   */
  const enrol = async (page: Page) => {
    await page.getByRole("img", { name: "QR code of the key" }).waitFor();
    const secret = (await page.locator("[data-secret]").innerText()).replaceAll(" ", "");
    await sound(page);
    const code = page.getByLabel("Code of the app");
    expect(await code.getAttribute("autocomplete")).toBe("one-time-code");
    await code.fill(wrongCodeOf(secret));
    await page.getByRole("button", { name: "Turn it on" }).click();
    await page.getByText("The code was not accepted.").waitFor();
    await code.fill(codeOf(secret));
    await page.getByRole("button", { name: "Turn it on" }).click();
    await page.getByText("They are shown now and never again.").waitFor();
    const codes = await page.locator("[data-secret] li").allInnerTexts();
    expect(codes).toHaveLength(10);
    for (const one of codes) expect(one).toMatch(recoveryCode);
    await sound(page);
    const done = page.getByRole("button", { name: "Done" });
    expect(await done.isDisabled()).toBe(true);
    await page.getByLabel("I have kept them").check();
    await done.click();
    return { secret, codes };
  };

  describe("a second factor", () => {
    test("is added in the settings, asked for at each sign-in, and removed", async () => {
      const { context, page, url } = await visitor("tess", 360);
      await page.goto(`${url}/settings`);
      await showPassword(page, "tess");
      const card = page.locator("section", { has: page.getByRole("heading", { name: "Second factor" }) });
      await card.getByRole("button", { name: "Add a second factor" }).click();
      await card.getByLabel("Present password").fill("not the password");
      await page.keyboard.press("Enter");
      await card.getByRole("alert").waitFor();
      await card.getByLabel("Present password").fill(password);
      await page.keyboard.press("Enter");
      const { secret, codes } = await enrol(page);
      await card.getByText("Recovery codes that are left: 10").waitFor();

      await context.clearCookies();
      await page.goto(`${url}/settings`);
      await showPassword(page, "tess");
      await page.getByText("tess, now the code that your authenticator app shows.").waitFor();
      await sound(page);
      await showCode(page, wrongCodeOf(secret));
      await page.getByText("The code was not accepted.").waitFor();
      // "Back" starts again, and the typed password is gone.
      await page.getByRole("button", { name: "Back" }).click();
      expect(await page.getByLabel("Password", { exact: true }).inputValue()).toBe("");
      await showPassword(page, "tess");
      await showCode(page, codeOf(secret, 1));
      await card.getByText("Recovery codes that are left: 10").waitFor();

      await context.clearCookies();
      await page.goto(`${url}/settings`);
      await showPassword(page, "tess");
      await showCode(page, codes[0] ?? "");
      await card.getByText("Recovery codes that are left: 9").waitFor();
      await card.getByRole("button", { name: "Remove it" }).click();
      await card.getByLabel("Present password").fill(password);
      await card.getByLabel("Code of the app, or a recovery code").fill(codes[1] ?? "");
      await sound(page);
      await card.getByRole("button", { name: "Remove it" }).click();
      await card.getByRole("button", { name: "Add a second factor" }).waitFor();
      const kept = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }]));
      for (const one of [secret, ...codes]) expect(kept).not.toContain(one);
      await context.close();
    });

    test("is asked for again with the password, where an old sign-in is to end the others", async () => {
      const { context, page, url } = await visitor("otto", 360);
      await page.goto(`${url}/settings`);
      await showPassword(page, "otto");
      const factor = page.locator("section", { has: page.getByRole("heading", { name: "Second factor" }) });
      await factor.getByRole("button", { name: "Add a second factor" }).click();
      await factor.getByLabel("Present password").fill(password);
      await page.keyboard.press("Enter");
      const { secret, codes } = await enrol(page);
      const post = (path: string, cookie: string, method = "POST", body?: object) =>
        fetch(`${url}${path}`, {
          method,
          headers: { origin: url, cookie, ...(body ? { "content-type": "application/json" } : {}) },
          ...(body ? { body: JSON.stringify(body) } : {}),
        });
      const phone = await post("/v1/sign-in", "", "POST", { name: "otto", password, code: codes[0] });
      const cookieOfPhone = (phone.headers.getSetCookie()[0] ?? "").split(";")[0] ?? "";
      const sql = new pg.Client(postgres().url);
      await sql.connect();
      await sql.query(
        `update ${house.stage.schema}.sign_in set created_ms = created_ms - 3600000 where user_id = (select id from ${house.stage.schema}.user_account where name = $1)`,
        ["otto"],
      );
      await sql.end();
      const own = (await context.cookies()).map(({ name, value }) => `${name}=${value}`).join("; ");
      // The server caches sign-ins briefly, so it may take a moment until it refuses the sign-in as too old.
      await until("the sign-in is known to be old", async () =>
        /SIGN_IN_OLD/.test(await (await post("/v1/me/sign-ins/1", own, "DELETE")).text()),
      );
      await page.reload();
      await page.getByRole("button", { name: "End all others" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByLabel("Present password").fill(password);
      await sound(page);
      await dialog.getByRole("button", { name: "Sign in and end" }).click();
      await dialog.getByLabel("Code", { exact: true }).fill(codeOf(secret, 1));
      await dialog.getByRole("button", { name: "Sign in and end" }).click();
      await dialog.waitFor({ state: "detached" });
      await page.getByRole("button", { name: "End all others" }).waitFor({ state: "detached" });
      expect((await post("/v1/me", cookieOfPhone, "GET")).status).toBe(401);
      expect((await post("/v1/me", own, "GET")).status, "replaced").toBe(401);
      await context.close();
    });

    test("that was lost is reset by an admin among the users", async () => {
      const { context, page, url } = await visitor("rhea");
      await page.goto(`${url}/settings`);
      await showPassword(page, "rhea");
      await page.getByRole("button", { name: "Add a second factor" }).click();
      await page.locator("form", { hasText: "Continue" }).getByLabel("Present password").fill(password);
      await page.keyboard.press("Enter");
      await enrol(page);
      const { page: desk, go } = await house.visit();
      await go("/access");
      await desk.getByRole("button", { name: "More for rhea" }).click();
      await desk.getByRole("menuitem", { name: "Reset the second factor" }).click();
      await desk.getByRole("menu").waitFor({ state: "detached" });
      const dialog = desk.getByRole("dialog");
      await dialog.getByLabel("Reason").fill("lost her phone");
      expect(await violations(desk)).toEqual([]);
      await dialog.getByRole("button", { name: "Reset the second factor" }).click();
      await desk.getByText("rhea has no second factor any more").waitFor();
      await desk.getByRole("button", { name: "More for rhea" }).click();
      await desk.getByRole("menuitem", { name: "Sign-ins" }).waitFor();
      expect(await desk.getByRole("menuitem", { name: "Reset the second factor" }).count()).toBe(0);
      await desk.keyboard.press("Escape");
      await go("/audit?about=user");
      await desk.getByText("lost her phone").first().waitFor();
      await context.clearCookies();
      await page.goto(`${url}/settings`);
      await showPassword(page, "rhea");
      await heading(page, "Settings");
      await context.close();
    });

    test("that is demanded is made before all else, and after a password that was handed over", async () => {
      const strict = await openStage({ store: postgres().url, bare: true, requireSecondFactor: "everyone" });
      const context = await openContext(house.browser, { viewport: { width: 1_280, height: 800 } });
      const page = await context.newPage();
      const own = page.getByRole("heading", { name: "Add a second factor" });
      const begin = async (typed: string) => {
        await own.waitFor();
        await page.getByText("Nothing else is open until you have added one.").waitFor();
        await sound(page);
        await page.getByLabel("Present password").fill(typed);
        await page.keyboard.press("Enter");
        return enrol(page);
      };
      await page.goto(`${strict.url}/nodes`);
      await showPassword(page, "admin", strict.adminPassword);
      await begin(strict.adminPassword);
      await heading(page, "Nodes");
      const headers = { origin: strict.url };
      const data = { name: "nils", password, role: "viewer", temporary: true };
      expect((await context.request.post(`${strict.url}/v1/users`, { headers, data })).status()).toBe(201);
      await context.clearCookies();
      await page.goto(`${strict.url}/runs`);
      await showPassword(page, "nils");
      await page.getByRole("heading", { name: "Choose your own password" }).waitFor();
      const next = "nine otters at dusk";
      await page.getByLabel("Present password").fill(password);
      await page.getByLabel("New password").fill(next);
      await page.keyboard.press("Enter");
      await begin(next);
      await heading(page, "Runs");
      await context.close();
      await strict.tower.stop();
    });
  });
}
