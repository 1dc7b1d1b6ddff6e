import { describe, expect, test } from "vitest";
import { type House, heading, violations } from "./support/house.ts";
import { hostileName, hostileText } from "./support/stage.mjs";

/** Tests for console.test.ts: the work of an operator, from the list of tasks to a run's log. */
export function waysOfAnOperator(house: House): void {
  describe("an operator", () => {
    test("filters, goes back, and finds what was there", async () => {
      const { page, go } = await house.visit({ as: "operator" });
      await go("/tasks");
      await page.getByRole("link", { name: "heartbeat" }).waitFor();
      await page.getByPlaceholder("Name, * stands for any text").fill("report");
      await page.waitForURL(/matching=report/);
      await page.getByRole("link", { name: "heartbeat" }).waitFor({ state: "detached" });
      await page.getByRole("link", { name: "nightly-report" }).click();
      await heading(page, "nightly-report");
      await page.goBack();
      await heading(page, "Tasks");
      expect(await page.getByPlaceholder("Name, * stands for any text").inputValue()).toBe("report");
      await page.reload();
      await page.getByRole("link", { name: "nightly-report" }).waitFor();
      expect(await page.getByRole("link", { name: "heartbeat" }).count()).toBe(0);
      await page.getByRole("button", { name: "Clear" }).click();
      await page.getByRole("link", { name: "heartbeat" }).waitFor();
      // By keyboard: arrow keys move between rows, and Enter opens a row.
      await page.getByRole("link", { name: "export-ledger" }).focus();
      await page.keyboard.press("ArrowDown");
      await page.keyboard.press("Enter");
      await heading(page, "heartbeat");
      // The palette opens a task from a few letters of its name.
      await page.keyboard.press("Control+k");
      await page.getByRole("combobox", { name: "Go to" }).fill("send-inv");
      await page.getByRole("option", { name: /^send-invoices/ }).waitFor();
      expect(await violations(page)).toEqual([]);
      await page.keyboard.press("Enter");
      await heading(page, "send-invoices");
    });

    test("drains a worker, sees by whom and why, and puts it back", async () => {
      const { page, go } = await house.visit({ as: "operator" });
      await go("/workers");
      await page.getByRole("button", { name: "Drain atlas" }).click();
      await page.getByLabel("Reason").fill("a new disk");
      expect(await violations(page)).toEqual([]);
      await page.getByRole("dialog").getByRole("button", { name: "Drain" }).click();
      await page.getByText("atlas takes no more runs").waitFor();
      await page.getByText(/operator.*: a new disk/).waitFor();
      await page.getByText("drained", { exact: true }).waitFor();
      expect(await violations(page)).toEqual([]);
      await page.getByRole("button", { name: "Resume atlas" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Resume" }).click();
      await page.getByText("atlas takes runs again").waitFor();
      await page.getByRole("button", { name: "Drain atlas" }).waitFor();
      // The reload removes the toasts, whose undo buttons later steps would otherwise match.
      await page.reload();
    });

    test("pauses with a reason, undoes it, and pauses all that match", async () => {
      const { page, go } = await house.visit({ as: "operator" });
      await go("/tasks/purge-sessions");
      await page.getByRole("button", { name: "Pause" }).click();
      await page.getByLabel("Reason").fill(`audit ${hostileText}`);
      expect(await violations(page)).toEqual([]);
      await page.getByRole("dialog").getByRole("button", { name: "Pause" }).click();
      await page.getByText(/Paused by operator/).waitFor();
      await page.getByText("<script>window.hacked=1</script>").waitFor();
      await page.getByRole("button", { name: "Undo" }).click();
      await page.getByText(/Paused by operator/).waitFor({ state: "detached" });

      await go("/tasks?matching=export");
      await page.getByRole("button", { name: "Pause all…" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByText("export-ledger").waitFor();
      await dialog.getByLabel(/^Until/).fill("2099-03-27 06:00");
      expect(await violations(page)).toEqual([]);
      await dialog.getByRole("button", { name: "Pause" }).click();
      await page.getByText("done · 1 of 1").waitFor();
      const operation = dialog.getByRole("link").first();
      const shown = await operation.getAttribute("href");
      await dialog.getByRole("button", { name: "Close" }).last().click();
      await page
        .getByRole("row", { name: /export-ledger/ })
        .getByText("paused")
        .waitFor();
      await go(shown as string);
      await page.getByText("Paused until").waitFor();
    });

    test("runs a task with a payload, watches its log, cancels it and runs it again", async () => {
      const { page, go } = await house.visit({ as: "operator" });
      await go("/tasks/import-feed");
      await page.getByRole("button", { name: "Run now" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByRole("textbox", { name: "Payload" }).fill("{");
      await dialog.getByText("This is no JSON.").waitFor();
      expect(await dialog.getByRole("button", { name: "Run now" }).isDisabled()).toBe(true);
      await dialog.getByRole("textbox", { name: "Payload" }).fill('{ "lines": 400, "holdMs": 60000 }');
      await dialog.getByRole("button", { name: "Run now" }).click();
      await heading(page, /^Run \d+$/);
      await page.getByText("part 2 of 400").waitFor();
      await page.getByRole("button", { name: "Cancel the run" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Cancel the run" }).click();
      await page.locator('[data-state="cancelled"]').first().waitFor();
      const cancelled = page.url();
      await page.getByRole("button", { name: "Run again" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Run again" }).click();
      await page.waitForURL((url) => url.href !== cancelled);
      await page.getByText("part 1 of 400").waitFor();
    });

    test("sees what fires when, by keys too, and sets later what meets", async () => {
      const { page, go } = await house.visit({ as: "editor" });
      await go("/timeline?matching=sync-inventory");
      const cell = page.getByRole("button", { name: /: 4 runs due, at most 1 in the minute/ }).first();
      await cell.click();
      await page.waitForURL(/at=/);
      await page.getByRole("button", { name: /^1 run due at .*:45$/ }).click();
      await page.waitForURL(/minute=/);
      await page.getByRole("heading", { name: /^What fires \d\d:45$/ }).waitFor();
      await page.getByRole("table").getByRole("link", { name: "sync-inventory" }).waitFor();
      await cell.focus();
      await page.keyboard.press("ArrowDown");
      await page.keyboard.press("ArrowRight");
      await page.keyboard.press("Enter");
      await page.getByRole("heading", { name: /^What fires .*\d\d:00–\d\d:00$/ }).waitFor();
      expect(await page.locator("[data-cell]:focus").getAttribute("aria-pressed")).toBe("true");
      expect(new URL(page.url()).searchParams.has("minute")).toBe(false);

      await go("/timeline?days=1");
      const move = page.getByRole("listitem").filter({ hasText: /\*\/15 \* \* \* \* → \d+-59\/15/ });
      await move.getByRole("button", { name: "Set later" }).click();
      await page.getByRole("dialog").getByLabel("Reason").fill("the cache warms at the same minute");
      expect(await violations(page)).toEqual([]);
      await page.getByRole("dialog").getByRole("button", { name: "Set later" }).click();
      await page.getByText("1 task is set later").waitFor();
      await move.waitFor({ state: "detached" });
      await page.getByRole("button", { name: "Undo" }).click();
      await move.waitFor();
    });

    test("finds runs by their labels, and acts on those alone", async () => {
      const { page, go } = await house.visit({ as: "operator" });
      const enqueue = (customer: string) =>
        house.stage.tower.enqueue("warm-cache", null, { in: "5h", labels: { customer, region: "eu" } });
      const { runId } = await enqueue("labelled-42");
      const other = await enqueue("labelled-43");
      await go("/runs?task=warm-cache&state=ready");
      await page.getByLabel("Labels of the run").fill("customer=labelled-42, region=eu");
      await page.waitForURL(/label=customer/);
      const rows = page.getByRole("row", { name: /warm-cache/ });
      await page.getByRole("link", { name: String(runId), exact: true }).waitFor();
      await rows.nth(1).waitFor({ state: "detached" });
      await page.getByRole("button", { name: "Cancel all…" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByText("customer=labelled-42, region=eu").waitFor();
      await dialog.getByText(`run ${runId} of warm-cache`).waitFor();
      expect(await violations(page)).toEqual([]);
      await page.keyboard.press("Escape");
      await go(`/runs/${runId}`);
      await page.getByText("region=eu, customer=labelled-42").waitFor();
      for (const run of [runId, other.runId]) await house.stage.tower.cancel(run);
    });

    test("runs all again that match, follows it, and cancels what was chosen", async () => {
      const { page, go } = await house.visit({ as: "operator" });
      await go("/runs?task=sync-inventory&state=succeeded");
      await page.getByRole("button", { name: "Run all again…" }).click();
      const dialog = page.getByRole("dialog");
      const matched = Number(/\d+/.exec(await dialog.getByText(/^Run \d+ runs again\?$/).innerText())?.[0]);
      expect(matched).toBeGreaterThan(8);
      await dialog.getByText(`and ${matched - 8} more`).waitFor();
      expect(await dialog.getByText(/^run \d+ of sync-inventory$/).count()).toBe(8);
      expect(await page.getByRole("button", { name: "Cancel all…" }).isDisabled()).toBe(true);
      await dialog.getByLabel("Reason").fill("the stock was wrong");
      await dialog.getByRole("button", { name: "Run again" }).click();
      await dialog.getByRole("link", { name: "Follow it under Operations" }).click();
      await heading(page, /^Operation \d+$/);
      await page.getByText("the stock was wrong").waitFor();
      await page.getByText(`${matched} / ${matched}`).waitFor();
      const later = { in: "3h", keyed: ["one", "two"] };
      await Promise.all(later.keyed.map((key) => house.stage.tower.enqueue("warm-cache", null, { in: later.in, key })));
      await go("/runs?task=warm-cache&state=ready");
      await page
        .getByRole("row", { name: /warm-cache/ })
        .nth(1)
        .waitFor();
      await page.getByRole("checkbox", { name: "Choose all that are shown" }).check();
      await page.getByRole("button", { name: "Cancel them" }).click();
      await page.getByText(/^Cancel [23] runs\?$/).waitFor();
      await page.getByRole("dialog").getByRole("button", { name: "Cancel the run" }).click();
      await page.getByText(/^[23] runs cancelled$/).waitFor();
    });

    test("is told what is wrong, says that it is known, silences it, and tries a channel", async () => {
      const { page, go } = await house.visit({ as: "operator" });
      await go("/alarms");
      const alarm = page.getByRole("article", { name: `Runs failed: ${hostileName}` });
      await alarm.getByText("Read its error and log").waitFor();
      await alarm.getByRole("button", { name: "Acknowledge" }).click();
      await page.getByLabel("Reason").fill("it always was");
      await page.getByRole("dialog").getByRole("button", { name: "Acknowledge" }).click();
      await alarm.getByText("acknowledged by operator").waitFor();
      await alarm.getByRole("button", { name: "Silence…" }).click();
      await page.getByRole("dialog").getByText("1 d", { exact: true }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Silence", exact: true }).click();
      await alarm.getByText("silenced until").waitFor();
      await page.getByRole("button", { name: "Undo" }).click();
      await alarm.getByText("silenced until").waitFor({ state: "detached" });
      await page.getByRole("button", { name: "Send a test" }).click();
      const row = page.getByRole("row", { name: /Test.*test/ });
      await row.getByText(/ECONNREFUSED/).waitFor();
      await row.getByRole("button", { name: "Test" }).click();
      await page.getByRole("dialog").getByText("a test by operator").first().waitFor();
      expect(await violations(page)).toEqual([]);
    });

    test("fills in a payload's form, is told what is wrong where it is, and sees the JSON behind it", async () => {
      const { page, go } = await house.visit({ as: "operator" });
      await go("/tasks/refund");
      await page.getByRole("button", { name: "Run now" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByText("Writes to the customer.").waitFor();
      expect(await dialog.getByRole("switch", { name: "tell" }).isChecked()).toBe(true);
      await dialog.getByRole("textbox", { name: "customer" }).fill("al");
      await dialog.getByRole("button", { name: "Add to lines" }).click();
      expect(await violations(page)).toEqual([]);
      await dialog.getByRole("button", { name: "Run now" }).click();
      await dialog.getByText("The payload is not what the task takes.").waitFor();
      const wrong = dialog.locator('[aria-invalid="true"]');
      await wrong.nth(2).waitFor();
      expect(await dialog.getByText("This is needed.", { exact: true }).count()).toBe(2);
      await dialog.getByRole("textbox", { name: "customer" }).fill("alice");
      await dialog.getByRole("textbox", { name: "cents" }).fill("1250");
      await dialog.getByRole("textbox", { name: "sku" }).fill("sku-7");
      await dialog.getByRole("combobox", { name: "currency" }).click();
      await page.getByRole("option", { name: "CNY" }).click();
      await dialog.getByText("JSON", { exact: true }).click();
      expect(JSON.parse(await dialog.getByLabel("Payload", { exact: true }).last().inputValue())).toEqual({
        customer: "alice",
        cents: 1_250,
        currency: "CNY",
        tell: true,
        lines: [{ sku: "sku-7", count: 1 }],
      });
      await dialog.getByText("Form", { exact: true }).click();
      await dialog.getByRole("button", { name: "Run now" }).click();
      await heading(page, /^Run \d+$/);
      await page.locator('[data-state="succeeded"]').first().waitFor();
      await page.getByText('"alice"').first().waitFor();
    });

    test("finds in a log, and the find is in the address", async () => {
      const { page, go } = await house.visit({ as: "operator" });
      await page.goto(`${house.stage.url}/runs/${house.runs.logRun}?find=rejected`);
      await page.getByText("1 of 7").waitFor();
      await page.getByRole("textbox", { name: "Find in the log" }).press("Enter");
      await page.getByText("2 of 7").waitFor();
      const mark = page.locator("mark", { hasText: "rejected" }).first();
      await mark.waitFor();
      // The text looks as in a terminal: red, without visible escape sequences.
      expect(await mark.locator("xpath=..").getAttribute("data-colour")).toBe("1");
      expect(await page.getByRole("log").textContent()).not.toContain("[31");
      // The page loads only a part of a long log. The server finds text outside that part, and the page loads the lines around the match.
      await go(`/runs/${house.runs.longRun}`);
      await page.getByText("part 2 of 1600").waitFor();
      await page.getByRole("button", { name: "To the end" }).click();
      await page.getByText("part 1600 of 1600").waitFor();
      const find = page.getByRole("textbox", { name: "Find in the log" });
      await find.fill("part 804 OF");
      await page.getByText("1 of 1", { exact: true }).waitFor();
      await page.locator("mark", { hasText: "part 804 of" }).waitFor();
      await find.fill("");
      await page.getByRole("log").press("Home");
      await page.getByText("part 2 of 1600").waitFor();
    });

    test("edits a schedule in words, sees what it comes to, and goes back by the versions", async () => {
      const { page, go } = await house.visit({ as: "editor" });
      await go("/tasks/warm-cache");
      await page.getByRole("button", { name: "Edit", exact: true }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByText("By the calendar").click();
      await dialog.getByLabel("Cron, or words").fill("61 * * * *");
      await dialog.getByText(/61/).last().waitFor();
      expect(await dialog.getByRole("button", { name: "Save as a new version" }).isDisabled()).toBe(true);
      await dialog.getByLabel("Cron, or words").fill("weekdays at 9:30");
      await dialog.getByText(/at 09:30 on weekdays/).waitFor();
      expect(await dialog.getByRole("list", { name: "Next 20 slots" }).getByRole("listitem").count()).toBe(20);
      expect(await violations(page)).toEqual([]);
      await dialog.getByLabel("Reason").fill("cooler at night");
      await dialog.getByRole("button", { name: "Save as a new version" }).click();
      await page
        .locator("[data-head]")
        .getByText(/at 09:30 on weekdays/)
        .waitFor();
      await page.getByRole("tab", { name: "Versions" }).click();
      await page.getByText("cooler at night").waitFor();
      await page.getByRole("button", { name: "Go back to 1" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Revert" }).click();
      await page
        .locator("[data-head]")
        .getByText(/every 10 minutes/)
        .waitFor();
    });
  });
}
