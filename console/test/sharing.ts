import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { ask, type House, violations } from "./support/house.ts";

/** Tests for console.test.ts: views that are kept and shared, and what a screen shows as a command. */
export function whatIsShared(house: House): void {
  describe("a view of runs", () => {
    test("is kept with a name in the browser, and its link has its filter", async () => {
      const { page, go, context } = await house.visit({ as: "operator" });
      await context.grantPermissions(["clipboard-read", "clipboard-write"]);
      await go("/runs?matching=sync&state=failed");
      await page.getByRole("button", { name: "Views" }).click();
      const name = page.getByRole("textbox", { name: "Keep this filter as" });
      await name.fill("what fails");
      await name.press("Enter");
      await page.getByRole("button", { name: "what fails", exact: true }).waitFor();
      expect(await violations(page)).toEqual([]);
      await page.getByRole("button", { name: "Copy the link of this view" }).click();
      await page.getByRole("button", { name: "Copied" }).waitFor();
      const link = await page.evaluate(() => navigator.clipboard.readText());
      expect(link).toBe(`${house.stage.url}/runs?matching=sync&state=failed`);
      await page.keyboard.press("Escape");
      await go("/runs");
      await page.getByRole("button", { name: "Views" }).click();
      await page.getByRole("button", { name: "what fails", exact: true }).click();
      await page.waitForURL(/\/runs\?matching=sync&state=failed$/);
      // The list of tasks has views of its own.
      await go("/tasks");
      await page.getByRole("button", { name: "Views" }).click();
      await page.getByText("what fails").waitFor({ state: "detached" });
      await page.keyboard.press("Escape");
    });
  });

  describe("what a screen shows", () => {
    test("is copied as a command that reads the same with a token, and has none itself", async () => {
      const visit = await house.visit({ as: "operator" });
      const { page, go, context } = visit;
      await context.grantPermissions(["clipboard-read", "clipboard-write"]);
      const made = await ask(house, visit, "POST", "/tokens", { name: "curl", expiresIn: "1h" });
      const { secret: token } = made as { secret: string };
      const read = async (path: string) => {
        await go(path);
        await page.getByRole("button", { name: "Copy as curl" }).click();
        const command = await page.evaluate(() => navigator.clipboard.readText());
        expect(command).not.toMatch(/ct_|[Cc]ookie/);
        const { stdout } = await promisify(execFile)("sh", ["-c", command], {
          env: { ...process.env, CARILLON_TOKEN: token },
        });
        return JSON.parse(stdout);
      };
      const { items } = await read("/runs?task=sync-inventory&state=failed");
      expect(new Set(items.map(({ task, state }: { task: string; state: string }) => `${task} ${state}`))).toEqual(
        new Set(["sync-inventory failed"]),
      );
      expect(await read(`/runs/${house.runs.logRun}`)).toMatchObject({ run: house.runs.logRun, task: "import-feed" });
      expect((await read("/tasks?matching=it's")).items).toEqual([]);
    });
  });
}
