import { describe, expect, test } from "vitest";
import { type House, heading, violations } from "./support/house.ts";

/** Tests for console.test.ts: suggestions in fields, backfills, edits of tasks and of named schedules, and undo. */
export function completionsAndUndo(house: House): void {
  describe("what one begins", () => {
    test("is completed: a filter of tasks, by keys alone", async () => {
      const { page, go } = await house.visit({ as: "editor" });
      await go("/tasks");
      const name = page.getByRole("combobox", { name: "Name" });
      await name.fill("nightl");
      await page.getByRole("option", { name: "nightly-report" }).waitFor();
      expect(await violations(page)).toEqual([]);
      await page.keyboard.press("Escape");
      await page.getByRole("option", { name: "nightly-report" }).waitFor({ state: "detached" });
      expect(await name.inputValue()).toBe("nightl");
      await name.fill("send");
      await page.getByRole("option", { name: "send-invoices" }).waitFor();
      await page.keyboard.press("ArrowDown");
      await page.keyboard.press("Enter");
      await page.waitForURL(/matching=send-invoices/);
      await page.getByRole("link", { name: "send-invoices" }).waitFor();
      await page.getByRole("link", { name: "heartbeat" }).waitFor({ state: "detached" });
    });

    test("is told how much it is: past slots are counted, and run as an operation that the palette finds", async () => {
      const { page, go } = await house.visit({ as: "operator" });
      await go("/tasks/send-invoices");
      await page.getByRole("button", { name: "More actions" }).click();
      expect(await page.getByRole("menuitem", { name: "Remove…" }).count()).toBe(0);
      await page.getByRole("menuitem", { name: "Run past slots…" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByLabel("To", { exact: true }).fill("2025-03-13T00:00");
      await dialog.getByText("The first time must lie before the second.").waitFor();
      expect(await dialog.getByRole("button", { name: "Run them" }).isDisabled()).toBe(true);
      await dialog.getByLabel("From", { exact: true }).fill("2025-03-10T00:00");
      await dialog.getByText("3 slots lie between the two").waitFor();
      await dialog.getByText("send-invoices at Mon 10 Mar 2025 10:00").waitFor();
      expect(await violations(page)).toEqual([]);
      await dialog.getByLabel("Reason").fill("the archive was lost");
      await dialog.getByRole("button", { name: "Run them" }).click();
      await dialog.getByText("done · 3 of 3").waitFor();
      await dialog.getByRole("link", { name: "Follow it under Operations" }).click();
      await heading(page, /^Operation \d+$/);
      await page.getByText("the archive was lost").waitFor();
      const number = /\d+$/.exec(new URL(page.url()).pathname)?.[0] as string;
      await go("/");
      const entry = page.getByRole("link", { name: "operator backfills 3" });
      await entry.waitFor();
      await page.keyboard.press("Control+k");
      const palette = page.getByRole("combobox", { name: "Go to" });
      await palette.fill("runs fail");
      await page
        .getByRole("option", { name: /Runs failed/ })
        .first()
        .waitFor();
      await palette.fill(number);
      await page.getByRole("option", { name: new RegExp(`^Operation ${number}\\b`) }).click();
      await heading(page, `Operation ${number}`);
    });

    test("is judged while one types: an edit of when not to run, where, and of what has no field", async () => {
      const { page, go } = await house.visit({ as: "editor" });
      await go("/tasks/export-ledger");
      await page.getByRole("button", { name: "Edit", exact: true }).click();
      const dialog = page.getByRole("dialog");
      const save = dialog.getByRole("button", { name: "Save as a new version" });
      await dialog.getByRole("combobox", { name: "Calendar" }).click();
      await page.getByRole("option", { name: "de", exact: true }).click();
      await dialog.getByRole("combobox", { name: "Slots on other days" }).click();
      await page.getByRole("option", { name: "move to the next day that fits" }).click();
      await dialog.getByRole("button", { name: "Add a window" }).click();
      const window = dialog.getByRole("group", { name: "Window 1" });
      await window.getByLabel("From").fill("05:00");
      await window.getByLabel("To").fill("7");
      await dialog.getByText(/Both are local times such as "22:00"/).waitFor();
      expect(await save.isDisabled()).toBe(true);
      await window.getByLabel("To").fill("07:00");
      const slots = dialog.getByRole("listitem");
      await slots.filter({ hasText: "blackout 05:00 to 07:00 UTC" }).nth(4).waitFor();
      await window.getByRole("combobox", { name: "Slots in it" }).click();
      await page.getByRole("option", { name: "start at its end" }).click();
      await slots.filter({ hasText: "blackout 05:00 to 07:00 UTC: delayed" }).nth(4).waitFor();
      const [labels, rest] = [dialog.getByLabel(/^Labels that/), dialog.getByLabel("Everything else, as JSON")];
      await labels.fill("zone");
      await dialog.getByText("labels: zone has no value.").waitFor();
      await labels.fill("zone=eu-1");
      await rest.fill('{ "rate": { "limit": 0, "per": "1m" } }');
      await dialog.getByText(/^rate\.limit cannot be 0\. Give a whole number/).waitFor();
      expect(await rest.getAttribute("aria-invalid")).toBe("true");
      expect(await violations(page)).toEqual([]);
      await rest.fill('{ "limit": { "perKey": 2 } }');
      // A field must not disappear while invalid text is typed into it.
      const jitter = dialog.getByLabel("Spread by chance over");
      await jitter.fill("3x");
      await dialog.getByText(/^jitter/).waitFor();
      await jitter.fill("30s");
      await dialog.getByRole("combobox", { name: "How much later" }).click();
      await page.getByRole("option", { name: "always the same amount" }).click();
      await dialog.getByLabel("Attempts at most").fill("3");
      await dialog.getByRole("combobox", { name: "Waits between tries" }).click();
      await page.getByRole("option", { name: "always as long" }).click();
      await dialog.getByLabel("The first wait").fill("5s");
      await dialog.getByText("6 changes").waitFor();
      await save.click();
      await dialog.waitFor({ state: "detached" });
      await page.getByRole("tab", { name: "Versions" }).click();
      for (const part of ["schedule", "retry", "calendar", "blackout", "labels", "limit"])
        await page.getByRole("region", { name: "What differs" }).getByText(part).first().waitFor();
      await page.getByText("jitterBy").first().waitFor();
    });

    test("is a schedule of a task: folded at its task, edited in what it says itself, and removed with the task", async () => {
      const { page, go, context } = await house.visit({ as: "editor" });
      const put = async (task: string, options: object) => {
        const answer = await context.request.put(`${house.stage.url}/v1/tasks/${task}`, {
          headers: { origin: house.stage.url },
          data: { options },
        });
        expect([answer.status(), await answer.text()]).toEqual([201, expect.any(String)]);
      };
      const schedule = { type: "cron", expression: "0 9 * * *", zone: "UTC" };
      await put("tell-tenants", { command: { argv: ["/usr/bin/true"] }, description: "Tells each what it owes." });
      for (const tenant of ["tenant-1", "tenant-2"])
        await put(`tell-tenants:${tenant}`, { of: "tell-tenants", schedule, slotPayload: { tenant } });
      await go("/tasks?matching=tell-tenants*");
      await page.getByRole("link", { name: "2 schedules" }).click();
      await heading(page, "Schedules of tell-tenants");
      expect(await violations(page)).toEqual([]);
      await page.getByRole("link", { name: "tell-tenants:tenant-2", exact: true }).click();
      await heading(page, "tell-tenants:tenant-2");
      await page.locator("[data-head]").getByText("A schedule of").waitFor();

      const dialog = page.getByRole("dialog");
      await page.getByRole("button", { name: "Edit", exact: true }).click();
      await dialog.getByText(/^This is a schedule of tell-tenants\./).waitFor();
      for (const label of ["Attempts at most", "While one runs", "When a worker is lost", "Priority", "Which worker"])
        expect([label, await dialog.getByLabel(label, { exact: true }).count()]).toEqual([label, 0]);
      expect(await dialog.getByRole("radio", { name: "By hand" }).count()).toBe(0);
      await dialog.getByText(/^slotPayload\. Parts that are left out/).waitFor();
      await dialog.getByLabel("Cron, or words").fill("every day at 10:30");
      await dialog.getByLabel("Everything else, as JSON").fill('{ "slotPayload": { "tenant": 22 } }');
      await dialog.getByText("2 changes").waitFor();
      expect(await violations(page)).toEqual([]);
      await dialog.getByRole("button", { name: "Save as a new version" }).click();
      await dialog.waitFor({ state: "detached" });
      await page.locator("[data-head]").getByText(/10:30/).waitFor();

      await page.locator("[data-head]").getByRole("link", { name: "tell-tenants", exact: true }).click();
      await heading(page, "tell-tenants");
      await page.getByRole("button", { name: "More actions" }).click();
      await page.getByRole("menuitem", { name: "Remove…" }).click();
      await dialog.getByText(/^Its 2 other schedules are removed with it\./).waitFor();
      await dialog.getByRole("button", { name: "Remove" }).click();
      await heading(page, "Tasks");
      const told = page.getByRole("status").locator("div", { hasText: "tell-tenants is removed" });
      // There is no undo, because removing the task also removed its named schedules, which cannot be recreated.
      expect(await told.getByRole("button", { name: "Undo" }).count()).toBe(0);
      await told.getByRole("button", { name: "Close" }).click();
      const left = await context.request.get(`${house.stage.url}/v1/tasks?of=tell-tenants`);
      expect((await left.json()).items).toEqual([]);
    });

    test("is undone: a way back by versions, and a removal", async () => {
      const { page, go } = await house.visit({ as: "editor" });
      await go("/tasks/purge-sessions");
      await page.getByRole("button", { name: "Edit", exact: true }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByLabel("Description").fill("Closes old doors.");
      await dialog.getByRole("button", { name: "Save as a new version" }).click();
      await dialog.waitFor({ state: "detached" });
      await page.getByText("Closes old doors.").waitFor();
      await page.getByRole("button", { name: "More actions" }).click();
      await page.getByRole("menuitem", { name: "Revert what was edited…" }).click();
      await dialog.getByRole("button", { name: "Revert" }).click();
      await page.getByText("Closes old doors.").waitFor({ state: "detached" });
      const undo = (told: string) =>
        page.getByRole("status").locator("div", { hasText: told }).getByRole("button", { name: "Undo" });
      await undo("is set back to its code's definition").click();
      await page.getByText("Closes old doors.").waitFor();
      // Reverts the task again, because a removed task with edited parts could not be recreated exactly.
      await page.getByRole("tab", { name: "Versions" }).click();
      await page.getByRole("button", { name: "Go back to 3" }).click();
      await dialog.getByRole("button", { name: "Revert" }).click();
      await page.getByText("It is again as in version 3").waitFor();
      await page.getByRole("button", { name: "More actions" }).click();
      await page.getByRole("menuitem", { name: "Remove…" }).click();
      await dialog.getByRole("button", { name: "Remove" }).click();
      await heading(page, "Tasks");
      await undo("purge-sessions is removed").click();
      await heading(page, "purge-sessions");
      await page.locator("[data-head]").getByText(/04:00/).waitFor();
    });
  });
}
