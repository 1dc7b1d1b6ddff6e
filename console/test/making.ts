import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { type House, heading, overhang, violations } from "./support/house.ts";

/** True if the middle of the dialog's button is on the screen, and nothing lies over it. */
const isInReach = (page: Page, name: string): Promise<boolean> =>
  page
    .getByRole("dialog")
    .getByRole("button", { name })
    .evaluate((button) => {
      const { left, top, width, height } = button.getBoundingClientRect();
      return button.contains(document.elementFromPoint(left + width / 2, top + height / 2));
    });

/** Tests for console.test.ts: tasks are created and edited, and runs are rerun with another payload. */
export function makingAndEditing(house: House): void {
  describe("an editor", () => {
    test("sees 20 slots with the clocks' changes, names a zone in full, and reads one field's change", async () => {
      const { page, go } = await house.visit({ as: "editor" });
      await go("/tasks/nightly-report");
      await page.getByRole("button", { name: "Edit", exact: true }).click();
      const dialog = page.getByRole("dialog");
      const zone = dialog.getByRole("combobox", { name: "Time zone" }).first();
      const slots = dialog.getByRole("list", { name: "Next 20 slots" });
      await slots.waitFor();
      expect(await slots.getByRole("listitem").count()).toBe(20);
      // A daily cron at 02:30 in Berlin is skipped or repeated twice a year, when the clocks change: within the next 20 slots, or
      // later.
      await dialog
        .getByText(/clocks go 60 min (forward|back)/)
        .first()
        .waitFor();
      expect(await isInReach(page, "Save as a new version")).toBe(true);
      expect(await violations(page)).toEqual([]);

      await zone.fill("america/new_york");
      await zone.press("Enter");
      await expect.poll(() => zone.inputValue()).toBe("America/New_York");
      await dialog
        .getByRole("status")
        .getByText(/America\/New_York/)
        .waitFor();
      await zone.fill("US/Pacific");
      await zone.press("Enter");
      await expect.poll(() => zone.inputValue()).toBe("America/Los_Angeles");
      await zone.fill("Lisb");
      await zone.press("Enter");
      await expect.poll(() => zone.inputValue()).toBe("Europe/Lisbon");
      await dialog.getByText("1 change", { exact: true }).click();
      const changes = dialog.getByRole("region", { name: "What differs" });
      expect((await changes.locator("del").innerText()).trim()).toMatch(/Europe\/Berlin$/);
      expect((await changes.locator("ins").innerText()).trim()).toMatch(/Europe\/Lisbon$/);
      await changes.getByText("schedule.zone").waitFor();
      expect(await violations(page)).toEqual([]);
      await dialog.getByRole("button", { name: "Cancel" }).click();

      const phone = await house.visit({ as: "editor", width: 390, height: 800 });
      await phone.go("/tasks/nightly-report");
      await phone.page.getByRole("button", { name: "Edit", exact: true }).click();
      await phone.page.getByRole("dialog").getByRole("listitem").first().waitFor();
      expect(await isInReach(phone.page, "Save as a new version")).toBe(true);
      expect(await overhang(phone.page)).toBe(0);
      await phone.page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
    });

    test("creates a task, and another as its copy", async () => {
      const { page, go } = await house.visit({ as: "editor" });
      const dialog = page.getByRole("dialog");
      await go("/tasks");
      await page.getByRole("button", { name: "New task" }).click();
      await dialog.getByRole("textbox", { name: "Name" }).fill("ping-shop");
      await dialog.getByRole("textbox", { name: "URL" }).fill("ftp://shop.example");
      await dialog.getByText(/cannot begin with ftp:/).waitFor();
      expect(await dialog.getByRole("button", { name: "Create" }).isDisabled()).toBe(true);
      await dialog.getByRole("textbox", { name: "URL" }).fill("https://shop.example/ping");
      await dialog.getByLabel("Cron, or words").fill("weekdays at 9:30");
      await dialog
        .getByText(/at 09:30 on weekdays/)
        .first()
        .waitFor();
      expect(await violations(page)).toEqual([]);
      await dialog.getByRole("button", { name: "Create" }).click();
      await heading(page, "ping-shop");
      await page
        .locator("[data-head]")
        .getByText(/at 09:30 on weekdays/)
        .waitFor();

      await page.getByRole("button", { name: "More actions" }).click();
      await page.getByRole("menuitem", { name: "Copy to a new task…" }).click();
      await dialog.getByRole("textbox", { name: "Name" }).fill("ping-shop");
      await expect
        .poll(() => dialog.getByRole("textbox", { name: "URL" }).inputValue())
        .toBe("https://shop.example/ping");
      await dialog.getByRole("button", { name: "Create" }).click();
      await dialog.getByRole("alert").waitFor();
      await dialog.getByRole("textbox", { name: "Name" }).fill("list-shop");
      await dialog.getByText("Command", { exact: true }).click();
      await dialog.getByLabel("Command line").fill("sh -c 'ls /srv/shop");
      await dialog.getByText("A quote is not closed.").waitFor();
      await dialog.getByLabel("Command line").fill("sh -c 'ls /srv/shop | wc -l'");
      await dialog.getByRole("button", { name: "Create" }).click();
      await heading(page, "list-shop");
      const { definition } = (await page.evaluate(async () => (await fetch("/v1/tasks/list-shop")).json())) as {
        definition: { command: { argv: string[] }; http?: object };
      };
      expect([definition.command.argv, definition.http]).toEqual([["sh", "-c", "ls /srv/shop | wc -l"], undefined]);
      await page
        .locator("[data-head]")
        .getByText(/at 09:30 on weekdays/)
        .waitFor();
    });
  });

  describe("an operator", () => {
    test("runs a run again with another payload, and as it was without a change", async () => {
      const { page, go } = await house.visit({ as: "operator" });
      const dialog = page.getByRole("dialog");
      const payload = dialog.getByLabel("Payload", { exact: true });
      const made = await house.stage.tower.enqueue(
        "import-feed",
        { lines: 4 },
        { labels: { shop: "eu" }, priority: 7 },
      );
      await go(`/runs/${made.runId}`);
      await page.locator('[data-state="succeeded"]').first().waitFor();
      await page.getByRole("button", { name: "Run again" }).click();
      await payload.waitFor();
      expect(JSON.parse(await payload.inputValue())).toEqual({ lines: 4 });
      await payload.fill('{ "lines": 6 }');
      expect(await violations(page)).toEqual([]);
      await dialog.getByRole("button", { name: "Run again" }).click();
      await page.getByText("part 1 of 6").waitFor();
      await page.getByText("shop=eu").waitFor();
      const other = Number(new URL(page.url()).pathname.split("/").at(-1));
      const { priority } = (await page.evaluate(async (run) => (await fetch(`/v1/runs/${run}`)).json(), other)) as {
        priority: number;
      };
      expect([other > made.runId, priority]).toEqual([true, 7]);
      await page.getByRole("button", { name: "Run again" }).click();
      await payload.waitFor();
      const sent = page.waitForRequest((request) => request.method() === "POST" && request.url().includes("/v1/runs/"));
      await dialog.getByRole("button", { name: "Run again" }).click();
      expect(new URL((await sent).url()).pathname).toBe(`/v1/runs/${other}/rerun`);
      await dialog.waitFor({ state: "detached" });
    });

    test("runs chosen runs again with another payload, the same for all", async () => {
      const { page, go } = await house.visit({ as: "operator" });
      const dialog = page.getByRole("dialog");
      const labels = { batch: "other-payload" };
      const made = await Promise.all(
        [2, 3].map((lines) => house.stage.tower.enqueue("import-feed", { lines }, { labels })),
      );
      for (const { runId } of made) {
        await go(`/runs/${runId}`);
        await page.locator('[data-state="succeeded"]').first().waitFor();
      }
      await go("/runs?label=batch%3Dother-payload");
      await page
        .getByRole("row", { name: /import-feed/ })
        .nth(1)
        .waitFor();
      await page.getByRole("checkbox", { name: "Choose all that are shown" }).check();
      await page.getByRole("button", { name: "Run again", exact: true }).click();
      await dialog.getByRole("switch", { name: "With another payload, the same for all" }).check();
      await dialog.getByLabel("Payload", { exact: true }).fill("{");
      await expect.poll(() => dialog.getByRole("button", { name: "Run again" }).isDisabled()).toBe(true);
      await dialog.getByLabel("Payload", { exact: true }).fill('{ "lines": 1 }');
      expect(await violations(page)).toEqual([]);
      await dialog.getByRole("button", { name: "Run again" }).click();
      await page.getByText("2 new runs made").waitFor();
      await dialog.waitFor({ state: "detached" });
      const runs = async () => {
        const answer = await page.evaluate(async () => (await fetch("/v1/runs?label=batch:other-payload")).json());
        return (answer as { items: { run: number }[] }).items
          .map(({ run }) => run)
          .filter((run) => !made.some((one) => one.runId === run));
      };
      await expect.poll(async () => (await runs()).length).toBe(2);
      for (const run of await runs()) {
        await go(`/runs/${run}`);
        await page.getByText("part 1 of 1", { exact: false }).first().waitFor();
      }
    });
  });
}
