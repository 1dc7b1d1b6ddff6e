import { describe, expect, test } from "vitest";
import { type House, overhang, unrouted, violations } from "./support/house.ts";

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

    test("shows no figure as current while the store is away, and recovers by itself", async () => {
      const { page, go } = await house.visit({ as: "viewer", width: 1_920, height: 1_080 });
      await go("/wallboard");
      const figures = page.locator("dd");
      await expect.poll(() => figures.count()).toBe(6);
      const problem = { code: "STORE_UNREACHABLE", detail: "the store is away" };
      await page.route(
        (url) => /^\/v1\/(?:runs|groups|workers|alarms|coming|cluster)$/.test(url.pathname),
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
