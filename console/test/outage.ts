import { describe, expect, test } from "vitest";
import { StoreProxy } from "../../scheduler/test/support/proxy.ts";
import { postgres } from "../../scheduler/test/support/servers.ts";
import { type House, violations } from "./support/house.ts";
import { openStage } from "./support/stage.mjs";

/** Tests for console.test.ts: what the page shows while the server runs but cannot reach its store. */
export function storeAway(house: House): void {
  describe.each(["refuses", "hangs"] as const)("while the store %s", (how) => {
    test("nothing claims to be known, on any screen, and all recovers by itself", async () => {
      const proxy = await StoreProxy.before(postgres().url);
      const stage = await openStage({ store: proxy.url, bare: true });
      const { context, page, go } = await house.visit({ at: stage });
      await go("/");
      await page.getByText("Everything is on time").waitFor();
      await page.getByText("0 of 40 places taken").waitFor();
      const state = page.locator("header [data-state]");
      expect(await state.getAttribute("data-state")).toBe("live");
      if (how === "refuses") proxy.cut({ refuse: true });
      else proxy.hang();
      const banner = page
        .getByRole("alert")
        .getByText(/^The server .*What you see was last confirmed at \w+ \d+ \w+ \d\d:\d\d:\d\d/);
      await banner.waitFor();
      expect(["slow", "failed"]).toContain(await state.getAttribute("data-state"));
      const verdict = page.getByRole("region", { name: "Is everything on time?" });
      await verdict.getByText("Not known").waitFor();
      await verdict.getByText(/^What you see here was last confirmed at \w+ \d+ \w+ \d\d:\d\d:\d\d/).waitFor();
      expect(await page.getByText("Everything is on time").count()).toBe(0);
      // A figure that was read earlier stays visible; one that was never read is not shown as zero.
      await page.getByText("0 of 40 places taken").waitFor();
      expect(await violations(page)).toEqual([]);
      await page.getByRole("link", { name: "Alarms", exact: true }).first().click();
      await page
        .locator("#content")
        .getByText(/The server/)
        .nth(1)
        .waitFor();
      expect(await page.getByText("Nothing is wrong").count()).toBe(0);

      // A page that is loaded during the outage shows no figures until the store is reachable again.
      const late = await context.newPage();
      await late.goto(stage.url);
      await late
        .getByText(/^(The server (cannot reach its store|does not answer)|Not known)/)
        .first()
        .waitFor();
      expect(await late.getByText(/^0 (of|kinds)/).count()).toBe(0);
      proxy.heal();
      await late.getByText("0 of 40 places taken").waitFor();
      await late.getByText("Everything is on time").waitFor();
      await late.close();
      await page.getByText("Nothing is wrong").first().waitFor();
      await banner.waitFor({ state: "detached" });
      await page.locator('header [data-state="live"]').waitFor();
      await context.close();
      await stage.tower.stop();
      await proxy.close();
    });
  });
}
