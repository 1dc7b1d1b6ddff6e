import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { type House, heading, overhang, violations } from "./support/house.ts";

/** The run whose row is at a point of the screen. */
const runAt = (page: Page, x: number, y: number): Promise<string | undefined> =>
  page.evaluate(
    ([left, top]) =>
      document.elementFromPoint(left, top)?.closest("[role=row]")?.querySelector('a[href^="/runs/"]')?.textContent ??
      undefined,
    [x, y] as const,
  );

/** Tests for console.test.ts: live lists that change while the user reads them, their sorting and their columns. */
export function steadyLists(house: House): void {
  describe("a live list", () => {
    test("moves no row under the pointer, counts what is new, and shows it when asked", async () => {
      const { page, go } = await house.visit({ as: "operator" });
      const { tower } = house.stage;
      const grid = page.getByRole("table", { name: "Runs" });
      // The page first shows the list of an earlier visit. The row is measured once the fresh list is there: it may have so many new runs
      // that a row of the earlier list is below the screen.
      const newest = await tower.enqueue("warm-cache", null);
      await go("/runs");
      await grid.getByRole("link", { name: String(newest.runId), exact: true }).waitFor();
      const second = grid.getByRole("row").nth(2);
      const box = await second.boundingBox();
      if (!box) throw new Error("the list has a second row");
      const [x, y] = [box.x + 20, box.y + box.height / 2];
      await page.mouse.move(x, y);
      await page.mouse.move(x + 1, y);
      const before = await runAt(page, x, y);
      expect(before, "the pointer is on a row").toMatch(/^\d+$/);
      const first = await tower.enqueue("warm-cache", null);
      await page.getByRole("button", { name: /^\d+ new$/ }).waitFor();
      expect(await runAt(page, x, y)).toBe(before);
      expect(await grid.getByRole("link", { name: String(first.runId), exact: true }).count()).toBe(0);
      expect(await violations(page)).toEqual([]);
      // The first new rows may be of other runs; those that come later are counted anew.
      const shown = async () => {
        const news = page.getByRole("button", { name: /^\d+ new$/ });
        if (await news.isVisible()) await news.click();
        return grid.getByRole("link", { name: String(first.runId), exact: true }).count();
      };
      await expect.poll(shown).toBe(1);

      // Keyboard focus holds the rows in place too. After the focus has left, the list shows its new rows.
      await page.mouse.move(5, 400);
      await grid.getByRole("row").nth(2).getByRole("link").first().focus();
      await page.keyboard.press("ArrowDown");
      const focused = () => page.evaluate(() => document.activeElement?.getBoundingClientRect().top);
      const top = await focused();
      const next = await tower.enqueue("warm-cache", null);
      await page.getByRole("button", { name: /^\d+ new$/ }).waitFor();
      expect(await focused()).toBe(top);
      await page.evaluate(() => (document.activeElement as HTMLElement).blur());
      await grid.getByRole("link", { name: String(next.runId), exact: true }).waitFor();
    });

    test("keeps a row whose run has left the list, and says so", async () => {
      const { page, go } = await house.visit({ as: "operator" });
      const { tower } = house.stage;
      const made = await Promise.all([1, 2, 3].map(() => tower.enqueue("warm-cache", null, { in: "4h" })));
      const [gone] = made;
      if (!gone) throw new Error("three runs were made");
      await go("/runs?task=warm-cache&state=ready");
      const row = page
        .getByRole("row")
        .filter({ has: page.getByRole("link", { name: String(gone.runId), exact: true }) });
      await row.waitFor();
      await row.hover();
      const top = (await row.boundingBox())?.y;
      await tower.cancel(gone.runId);
      await page.locator("[data-gone]").waitFor();
      expect((await row.boundingBox())?.y).toBe(top);
      expect(await row.getAttribute("title")).toBe("No longer in this list");
      await page.mouse.move(5, 400);
      await row.waitFor({ state: "detached" });
      for (const { runId } of made.slice(1)) await tower.cancel(runId);
    });

    test("holds the overview's lists too", async () => {
      const { page, go } = await house.visit({ as: "operator" });
      await go("/");
      const card = page.locator("section", { hasText: "Fires next" }).last();
      const link = card.getByRole("link", { name: "heartbeat" });
      await link.waitFor();
      await link.hover();
      const box = await link.boundingBox();
      const text = await card.getByRole("list").innerText();
      // The link's box must not move although slots of its task pass.
      await card.getByText(/ago/).first().waitFor();
      expect(await link.boundingBox()).toEqual(box);
      const names = (lines: string) => lines.split("\n").filter((line) => /^[a-z]+-?[a-z]*$/.test(line));
      expect(names(await card.getByRole("list").innerText())).toEqual(names(text));
    });
  });

  describe("a table", () => {
    test("sorts by a column, either way, and back", async () => {
      const { page, go } = await house.visit({ as: "operator" });
      await go("/tasks");
      const grid = page.getByRole("table", { name: "Tasks" });
      const names = async () => {
        const found = await grid.locator('[data-index] a[href^="/tasks/"]:not([href*="?"])').allInnerTexts();
        return found.filter((name) => /^[a-z-]+$/.test(name));
      };
      await grid.getByRole("link", { name: "heartbeat" }).waitFor();
      const own = await names();
      const failed = grid.getByRole("columnheader", { name: "Failed" });
      await failed.getByRole("button").click();
      expect(await failed.getAttribute("aria-sort")).toBe("descending");
      await expect.poll(async () => (await names())[0]).toBe("sync-inventory");
      expect(await violations(page)).toEqual([]);
      const task = grid.getByRole("columnheader", { name: "Task" });
      await task.getByRole("button").click();
      await expect.poll(names).toEqual([...own].sort());
      await task.getByRole("button").click();
      await expect.poll(names).toEqual([...own].sort().reverse());
      await task.getByRole("button").click();
      await expect.poll(names).toEqual(own);
      expect(await task.getAttribute("aria-sort")).toBe(null);
    });

    test("has the columns that fit, those that are wanted, and cuts nothing beside free room", async () => {
      const { page, go } = await house.visit({ as: "operator", width: 1_024 });
      await go("/runs?task=sync-inventory");
      const grid = page.getByRole("table", { name: "Runs" });
      const headings = () => grid.getByRole("columnheader").allInnerTexts();
      await grid.getByRole("row").nth(3).waitFor();
      const outside = () =>
        grid.evaluate((table) => {
          const place = (table.parentElement as HTMLElement).getBoundingClientRect();
          return [...table.querySelectorAll("[role=cell]")].filter(
            (cell) => cell.getBoundingClientRect().right > place.right + 1,
          ).length;
        });
      await expect.poll(outside).toBe(0);
      expect(await page.getByRole("button", { name: "Menu" }).isVisible()).toBe(false);
      expect(await overhang(page)).toBe(0);
      expect(await headings()).toContain("Took");
      expect(await headings()).not.toContain("Worker");
      await page.getByRole("button", { name: /^Columns/ }).click();
      await page.getByRole("checkbox", { name: "Worker" }).check();
      expect(await violations(page)).toEqual([]);
      await page.keyboard.press("Escape");
      await expect.poll(headings).toContain("Worker");
      await page.reload();
      await expect.poll(headings).toContain("Worker");
      await page.getByRole("button", { name: /^Columns/ }).click();
      await page.getByRole("button", { name: "As many as fit" }).click();
      await page.keyboard.press("Escape");
      await expect.poll(headings).not.toContain("Worker");
      await go("/tasks");
      await heading(page, "Tasks");
      await page.getByRole("link", { name: "heartbeat" }).waitFor();
      await page.getByRole("columnheader", { name: "Schedule" }).waitFor();
      const cut = () =>
        page.evaluate(() =>
          [...document.querySelectorAll("[role=cell] time, [role=columnheader] button span")]
            .filter((element) => {
              const cell = element.closest("[role=cell], [role=columnheader]") as HTMLElement;
              return cell.scrollWidth > cell.clientWidth + 1;
            })
            .map((element) => element.textContent),
        );
      expect(await cut()).toEqual([]);
    });
  });
}
