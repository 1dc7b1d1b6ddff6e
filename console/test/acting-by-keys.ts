import { describe, expect, test } from "vitest";
import { ask, type House, heading, violations } from "./support/house.ts";

/** Tests for console.test.ts: acts that are begun in the command palette. */
export function actsOfThePalette(house: House): void {
  describe("the palette's acts", () => {
    test("open the dialogs of their screens, the one that is named first", async () => {
      const { page, go } = await house.visit({ as: "editor" });
      await go("/alarms");
      await heading(page, "Alarms");
      const field = page.getByRole("combobox", { name: "Go to" });
      const dialog = page.getByRole("dialog");
      const acts: [typed: string, entry: string, title: string][] = [
        ["pause send-inv", "Pause send-invoices…", "Pause send-invoices?"],
        ["run refu", "Run refund now…", "Run refund"],
        ["pause group defau", "Pause the tasks of group default…", ""],
        ["drain atl", "Drain atlas…", "Drain atlas"],
        ["create task", "Create a task…", "New task"],
      ];
      for (const [typed, entry, title] of acts) {
        await page.keyboard.press("Control+k");
        await field.fill(typed);
        await expect.poll(() => page.getByRole("option").first().innerText()).toContain(entry);
        if (typed === "pause send-inv") expect(await violations(page)).toEqual([]);
        await field.press("Enter");
        if (title === "") await dialog.getByText(/^Pause \d+ tasks\?$/).waitFor();
        else await dialog.getByText(title, { exact: true }).first().waitFor();
        await dialog.getByLabel("Reason").waitFor();
        expect([typed, await violations(page)]).toEqual([typed, []]);
        await dialog.getByRole("button", { name: "Cancel" }).click();
        await dialog.waitFor({ state: "detached" });
      }
      expect(new URL(page.url()).pathname).toBe("/alarms");
    });

    test("pause a task, and resume it without a dialog as its page does", async () => {
      const visit = await house.visit({ as: "operator" });
      const { page, go } = visit;
      await go("/nodes");
      await heading(page, "Nodes");
      const field = page.getByRole("combobox", { name: "Go to" });
      await page.keyboard.press("Control+k");
      await field.fill("pause warm-c");
      await field.press("Enter");
      await page.getByRole("dialog").getByLabel("Reason").fill("by keys");
      await page.getByRole("dialog").getByRole("button", { name: "Pause" }).click();
      await page.getByText("warm-cache is paused").waitFor();
      await page.keyboard.press("Control+k");
      await field.fill("resume warm-c");
      await page.getByRole("option", { name: /^Resume warm-cache/ }).waitFor();
      await field.press("Enter");
      await page.getByText("warm-cache fires again").waitFor();
      expect(await ask(house, visit, "GET", "/tasks/warm-cache")).toMatchObject({ paused: null });
      await page.reload();
    });

    test("are not there for a viewer, and none that only an editor may for an operator", async () => {
      const acts = async (as: "viewer" | "operator", expected: string[]) => {
        const { page, go } = await house.visit({ as });
        await go("/alarms");
        await heading(page, "Alarms");
        await page.keyboard.press("Control+k");
        await page.getByRole("combobox", { name: "Go to" }).fill("send-invoices");
        await page.getByRole("option", { name: /^send-invoices/ }).waitFor();
        const found = () => page.getByRole("option", { name: /^(?:Pause|Run|Create) / }).allInnerTexts();
        await expect.poll(async () => (await found()).map((text) => text.split("\n")[0])).toEqual(expected);
        await page.keyboard.press("Escape");
        await page.getByRole("dialog").waitFor({ state: "detached" });
      };
      await acts("operator", ["Run send-invoices now…", "Pause send-invoices…"]);
      await acts("viewer", []);
      const { page } = await house.visit({ as: "operator" });
      await page.keyboard.press("Control+k");
      await page.getByRole("option", { name: /Overview/ }).waitFor();
      expect(await page.getByRole("option", { name: /^Create a task/ }).count()).toBe(0);
      await page.keyboard.press("Escape");
    });
  });
}
