import { describe, expect, test } from "vitest";
import { type House, heading, unrouted, violations } from "./support/house.ts";

/** Tests for console.test.ts: dead letters, and the audit entries of acts on them. */
export function deadLettersAndAudit(house: House): void {
  describe("dead letters", () => {
    test("are told by what they failed of; one or all of them are run again or dismissed", async () => {
      const { page, go } = await house.visit({ as: "operator" });
      await go("/dead-letters");
      await heading(page, "Dead letters");
      const group = page.getByRole("link", { name: /warehouse # answered # after # tries/ });
      await group.click();
      await page.waitForURL(/fingerprint=/);
      await page.getByText(/^Error: warehouse \d answered 503 after 3 tries/).waitFor();
      const rows = page.getByRole("button", { name: /^Dismiss run \d+$/ });
      const before = await rows.count();
      expect(before).toBeGreaterThan(2);

      await rows.first().click();
      const dialog = page.getByRole("dialog");
      await dialog.getByText("Dismiss 1 dead letter?").waitFor();
      await dialog.getByText(/^run \d+ of sync-inventory$/).waitFor();
      expect(await violations(page)).toEqual([]);
      await dialog.getByLabel("Reason").fill("known");
      await dialog.getByRole("button", { name: "Dismiss" }).click();
      await page.getByText("done · 1 of 1").waitFor();
      await dialog.getByRole("button", { name: "Close" }).last().click();
      await expect.poll(() => rows.count()).toBe(before - 1);

      await page
        .getByRole("button", { name: /^Run \d+ again$/ })
        .first()
        .click();
      await dialog.getByRole("button", { name: "Run again" }).click();
      await page.getByText(/^Run \d+ was made$/).waitFor();
      // The address contains the filter and the open group, so the back button undoes a change of either.
      await page.getByPlaceholder("Task").fill("nothing-such");
      await page.keyboard.press("Enter");
      await page.getByText("None of these").waitFor();
      await page.getByPlaceholder("Task").fill("");
      await group.waitFor();

      await group.click();
      await page.getByRole("button", { name: /^Run (?:it|all \d+) again$/ }).click();
      await dialog.getByLabel("Reason").fill("the warehouse is back");
      await dialog.getByRole("button", { name: "Run again" }).click();
      // The run that was rerun above may have failed again, so the number of affected runs is not fixed.
      await expect.poll(() => dialog.innerText()).toMatch(/^done · [1-9]\d* of \d+/m);
      await dialog.getByRole("button", { name: "Close" }).last().click();
    });

    test("of more reasons than are listed are counted all the same, and one that is not is shown by its address", async () => {
      const { page, go } = await house.visit({ as: "operator", width: 1_281 });
      const told = (n: number) => ({
        fingerprint: `f${n}`,
        reason: { code: "E", words: `cause ${n}` },
        letters: 2_000 - n,
        lastRun: 1,
        tasks: Array.from({ length: 100 }, (_, task) => `task-${task}`),
        taskCount: 150,
        first: "2026-01-01T00:00:00.000Z",
        last: "2026-01-02T00:00:00.000Z",
      });
      // The test store has fewer dead letters than this test needs, so the answer is simulated.
      await page.route(/\/v1\/dead-letters\/groups/, (route) => {
        const one = /[?&]fingerprint=f(\d+)/.exec(route.request().url())?.[1];
        const groups = one ? [told(Number(one))] : Array.from({ length: 1_000 }, (_, n) => told(n));
        return route.fulfill({ json: { groups, total: { groups: 1_234, letters: 1_500_000 } } });
      });
      await go("/dead-letters?within=7d&fingerprint=f1100");
      await page.getByText(/^1.500.000 runs used up their tries, for 1.?234 reasons\.$/).waitFor();
      await page.getByRole("button", { name: "Run all 900 again" }).waitFor();
      await page.getByText("and 144 more").waitFor();
      for (let shown = 100; shown < 1_000; shown += 100)
        await page.getByRole("button", { name: `and ${1_000 - shown} more` }).click();
      await page.getByText("234 rarer reasons are not listed: a task or a time narrows it.").waitFor();
      await unrouted(page);
    });

    test("are for those to act on who may", async () => {
      const { page, go } = await house.visit({ as: "viewer" });
      await go("/dead-letters?task=javascript:alert/@evil/../..");
      await page.getByText("The last of them").waitFor();
      expect(await page.getByRole("button", { name: /again|Dismiss/ }).count()).toBe(0);
      expect(await page.getByRole("link", { name: "Audit" }).count()).toBe(0);
    });
  });

  describe("the audit", () => {
    test("tells who did what to what and why, and what differs; its filters are in the address", async () => {
      const { page, go } = await house.visit();
      await go("/audit");
      await page.getByPlaceholder("Who").fill("operator");
      await page.waitForURL(/who=operator/);
      await page.getByText("the warehouse is back").waitFor();
      await page.getByText("known", { exact: true }).waitFor();
      await page.getByRole("button", { name: /staff/ }).first().waitFor({ state: "detached" });

      await go("/audit?about=task&named=warm-cache&act=edit");
      await page
        .getByRole("button", { name: /edited task warm-cache.*schedule/ })
        .last()
        .click();
      await page.getByText("schedule.expression").waitFor();
      await page.locator("ins", { hasText: "30 9" }).first().waitFor();
      expect(await violations(page)).toEqual([]);
      await page.getByRole("link", { name: "All changes of it" }).click();
      await page.getByRole("button", { name: /made task warm-cache/ }).waitFor();
      expect(new URL(page.url()).search).toBe("?about=task&named=warm-cache");
      await page.goBack();
      await page.getByRole("button", { name: /made task warm-cache/ }).waitFor({ state: "detached" });
      await go("/audit?who=nobody");
      await page.getByText("No change matches").waitFor();
    });
  });
}
