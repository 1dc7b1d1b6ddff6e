import { describe, expect, test } from "vitest";
import { postgres } from "../../scheduler/test/support/servers.ts";
import { type House, overhang, unrouted, violations } from "./support/house.ts";
import { openStage } from "./support/stage.mjs";

/** Tests for console.test.ts: the wallboard. */
export function wallboard(house: House): void {
  describe("the wallboard", () => {
    test("is large, without anything to press, and shows what the overview shows", async () => {
      const { page, go, complaints } = await house.visit({ as: "viewer", width: 1_920, height: 1_080 });
      await go("/wallboard");
      await page.getByRole("heading", { level: 1, name: /is on time|On time, but|does not run/i }).waitFor();
      const board = page.getByRole("main");
      await board.getByText("heartbeat").first().waitFor();
      await board.getByText("sync-inventory").first().waitFor();
      const sizes = await board
        .locator("dd")
        .evaluateAll((all) => all.map((one) => Number.parseFloat(getComputedStyle(one).fontSize)));
      expect(sizes).toHaveLength(6);
      expect(Math.min(...sizes)).toBeGreaterThanOrEqual(90);
      expect(await page.locator("a, button, input, select").count()).toBe(0);
      expect(await violations(page)).toEqual([]);
      expect(await overhang(page)).toBe(0);
      expect(complaints).toEqual([]);
    });

    test("lists as overdue the runs that its figure counts, by the time of the server's answer", async () => {
      // A server without runs: no event makes the page ask more often than every 3 s.
      const stage = await openStage({ store: postgres().url, bare: true });
      const { context, page, go } = await house.visit({ at: stage, width: 1_920, height: 1_080 });
      await go("/wallboard");
      const overdue = page.locator("section", { has: page.getByRole("heading", { name: "Overdue" }) });
      let lateMs = 1_000;
      let answers = 0;
      const isReady = (url: URL) => url.pathname === "/v1/runs" && url.searchParams.getAll("state").join() === "ready";
      await page.route(isReady, async (route) => {
        answers++;
        const due = new Date(Date.now() - lateMs).toISOString();
        const item = { run: 1, task: "waits-a-little", state: "ready", due };
        await route.fulfill({ json: { items: [item], next: null } });
      });
      // Between two answers the clock passes the bound of the run, and only the next answer may say that the run still waits.
      await page.evaluate(() => {
        const look = () => {
          const listed = [...document.querySelectorAll("section")].find(
            (one) => one.querySelector("h2")?.textContent === "Overdue",
          );
          if (listed?.textContent?.includes("waits-a-little")) Object.assign(globalThis, { listedOverdue: true });
        };
        new MutationObserver(look).observe(document.body, { subtree: true, childList: true, characterData: true });
      });
      await expect.poll(() => answers).toBeGreaterThan(3);
      expect(await page.evaluate(() => "listedOverdue" in globalThis)).toBe(false);
      lateMs = 10_000;
      await overdue.getByText("waits-a-little").waitFor();
      await page.locator("dl > div", { hasText: "Overdue" }).locator("dd", { hasText: /^1$/ }).waitFor();
      await context.close();
      await stage.tower.stop();
    });

    test("shows what became of an act that was begun in the palette", async () => {
      const { page, go } = await house.visit({ as: "operator" });
      await go("/wallboard");
      await page.locator("dd").first().waitFor();
      const field = page.getByRole("combobox", { name: "Go to" });
      await page.keyboard.press("Control+k");
      await field.fill("pause warm-c");
      await field.press("Enter");
      await page.getByRole("dialog").getByLabel("Reason").fill("from the wall");
      await page.getByRole("dialog").getByRole("button", { name: "Pause" }).click();
      await page.getByText("warm-cache is paused").waitFor();
      await page.getByRole("button", { name: "Undo" }).click();
      await page.getByText("warm-cache fires again").waitFor();
      expect(new URL(page.url()).pathname).toBe("/wallboard");
    });

    test("shows no figure as current while the store is away, and recovers by itself", async () => {
      const { page, go } = await house.visit({ as: "viewer", width: 1_920, height: 1_080 });
      await go("/wallboard");
      const figures = page.locator("dd");
      await expect.poll(() => figures.count()).toBe(6);
      const problem = { code: "STORE_UNREACHABLE", detail: "the store is away" };
      await page.route(
        // All reads of the store fail. One that was answered would show the figures again.
        (url) => /^\/v1\/(?!me$|sign-in|events)/.test(url.pathname),
        (route) => route.fulfill({ status: 503, json: problem }),
      );
      await page.getByRole("heading", { level: 1, name: "Not known" }).waitFor();
      await page.getByText(/^What you see here was last confirmed at/).waitFor();
      expect(await figures.count()).toBe(0);
      expect(await violations(page)).toEqual([]);
      await unrouted(page);
      await expect.poll(() => figures.count()).toBe(6);
    });
  });
}
