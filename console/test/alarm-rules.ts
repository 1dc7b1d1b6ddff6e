import { describe, expect, test } from "vitest";
import { type House, violations } from "./support/house.ts";

/** Tests for console.test.ts: stored alarm rules. */
export function waysOfAlarmRules(house: House): void {
  describe("an admin", () => {
    test("makes an alarm rule, turns it off, edits and deletes it; an operator only reads it", async () => {
      const { page, go } = await house.visit({ as: "admin" });
      const dialog = page.getByRole("dialog");
      const row = page.getByRole("row", { name: /reported-by-six/ });
      await go("/alarms");
      await page.getByRole("button", { name: "New rule…" }).click();
      await page.getByRole("dialog", { name: "New rule", exact: true }).waitFor();
      const store = dialog.getByRole("button", { name: "Store" });
      await dialog.getByRole("combobox", { name: "Finds" }).click();
      await page.getByRole("option", { name: "Not done in time" }).click();
      await dialog.getByRole("textbox", { name: "Name" }).fill("reported-by-six");
      expect(await store.isDisabled(), "it has no time yet").toBe(true);
      await dialog.getByRole("textbox", { name: "Done by" }).fill("06:00");
      await dialog.getByRole("textbox", { name: "Time zone" }).fill("Asia/Shanghai");
      await dialog.getByRole("combobox", { name: "Tasks", exact: true }).fill("no-such-*");
      await page.keyboard.press("Enter");
      expect(await violations(page)).toEqual([]);
      await store.click();
      await row.getByText("not done by 06:00 Asia/Shanghai").waitFor();
      await row.getByText("no channel: only listed here").waitFor();
      const on = row.getByRole("switch");
      expect(await on.isChecked()).toBe(true);
      await on.click({ force: true });
      await expect.poll(() => on.isChecked()).toBe(false);
      await row.getByRole("button", { name: "Edit reported-by-six" }).click();
      await dialog.getByRole("textbox", { name: "Done by" }).fill("6:00");
      await store.click();
      await dialog.getByText("by must be a time such as").waitFor();
      await dialog.getByRole("textbox", { name: "Done by" }).fill("05:30");
      await store.click();
      await row.getByText("not done by 05:30 Asia/Shanghai").waitFor();
      expect(await on.isChecked(), "it stays off").toBe(false);
      const operator = await house.visit({ as: "operator" });
      await operator.go("/alarms");
      const read = operator.page.getByRole("row", { name: /reported-by-six/ });
      await read.waitFor();
      expect([await read.getByRole("button").count(), await read.getByRole("switch").isDisabled()]).toEqual([0, true]);
      const again = await house.visit({ as: "admin" });
      await again.go("/alarms");
      await row.getByRole("button", { name: "Delete reported-by-six" }).click();
      await dialog.getByRole("button", { name: "Delete" }).click();
      await row.waitFor({ state: "detached" });
    });
  });
}
