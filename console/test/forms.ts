import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { ask, type House, heading, settled, unrouted, violations } from "./support/house.ts";
import { password } from "./support/stage.mjs";

/** Lets the server carry out the next request with this method and URL, but drops its answer. */
async function loseAnswer(page: Page, url: RegExp, method: string): Promise<void> {
  let lost = false;
  // `times: 1` is not used, because a read of the same URL before the write would count as the one time.
  await page.route(url, async (route) => {
    if (lost || route.request().method() !== method) return route.fallback();
    lost = true;
    await route.fetch();
    await route.abort("connectionreset");
    await page.unroute(url);
  });
}

function hold(): { held: Promise<void>; release: () => void } {
  let release = (): void => undefined;
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  return { held, release };
}

/** Tests for console.test.ts: forms while other users make changes, while the user leaves the page, and while an answer is missing. */
export function formsAmongOthers(house: House): void {
  describe("a form, while others act", () => {
    test("undoes no edit that came meanwhile, and no way back does", async () => {
      const visit = await house.visit({ as: "editor" });
      const { page, go } = visit;
      const dialog = page.getByRole("dialog");
      await go("/tasks/send-invoices");
      await page.getByRole("button", { name: "Edit", exact: true }).click();
      await dialog.getByLabel("Description").fill("Every working day.");
      await ask(house, visit, "PATCH", "/tasks/send-invoices", { options: { timeout: "2h" } });
      await dialog.getByText(/^Version \d+ came while this was open/).waitFor();
      expect(await violations(page)).toEqual([]);
      await dialog.getByText("1 change", { exact: true }).waitFor();
      await dialog.getByRole("button", { name: "Save as a new version" }).click();
      await dialog.getByText("Another user changed the task meanwhile.").waitFor();
      expect(await dialog.getByLabel("Description").inputValue()).toBe("Every working day.");
      await dialog.getByRole("button", { name: "Cancel" }).click();

      await page.getByRole("tab", { name: "Versions" }).click();
      await page.getByRole("button", { name: "Go back to 1" }).click();
      await ask(house, visit, "PATCH", "/tasks/send-invoices", { options: { priority: 7 } });
      await page.getByText("From 2 to 3").waitFor();
      await dialog.getByRole("heading", { name: "Go back to 1" }).waitFor();
      await dialog.getByRole("button", { name: "Revert" }).click();
      await dialog.getByText("Another user changed the task meanwhile.").waitFor();
      await dialog.getByRole("button", { name: "Cancel" }).click();
      const { definition } = (await ask(house, visit, "GET", "/tasks/send-invoices")) as {
        definition: { timeoutMs: number; priority: number };
      };
      expect([definition.timeoutMs, definition.priority]).toEqual([7_200_000, 7]);
    });

    test("stores no calendar over another that came meanwhile", async () => {
      const visit = await house.visit({ as: "editor" });
      const { page, go } = visit;
      const content = { zone: "Europe/Berlin", weekend: [0, 6] };
      await ask(house, visit, "PUT", "/calendars/fairs", { ...content, holidays: [] });
      await go("/calendars/fairs?year=2031");
      await page.getByRole("button", { name: "Edit", exact: true }).click();
      await page.locator('button[title^="2031-03-04"]').click();
      await page.getByText("1 holiday more · 0 fewer").waitFor();
      await ask(house, visit, "PUT", "/calendars/fairs", { ...content, holidays: ["2031-05-01"] });
      // No event reports changes of a calendar without tasks; the page reads the calendar again when it becomes visible.
      await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
      await page.getByText("Version 2 came while this was open").waitFor();
      await page.getByText("1 holiday more · 0 fewer").waitFor();
      await page.getByRole("button", { name: "Save as a new version" }).click();
      await page.getByText(/it is not as you read it/).waitFor();
      await page.getByRole("button", { name: "Cancel" }).click();
      await page.getByTitle("2031-05-01 · holiday").waitFor();

      // Removes the calendar's only future holiday, which the server accepts only after a confirmation.
      await page.getByRole("button", { name: "Edit", exact: true }).click();
      await page.locator('button[title^="2031-05-01"]').click();
      await page.getByRole("button", { name: "Save as a new version" }).click();
      const dialog = page.getByRole("dialog", { name: "Take most coming holidays out of fairs?" });
      await dialog.getByRole("button", { name: "Save as a new version" }).click();
      await page.getByText("fairs is at version 3").waitFor();
      await page.getByTitle("2031-05-01 · worked").waitFor();
    });

    test("takes no rights back that another admin gave meanwhile", async () => {
      const visit = await house.visit();
      const { page, go } = visit;
      const dialog = page.getByRole("dialog");
      await ask(house, visit, "POST", "/users", { name: "gwen", password, role: "viewer" });
      await go("/access");
      await page.getByRole("button", { name: "Change gwen" }).click();
      await dialog.getByPlaceholder("Namespace").fill("billing");
      await dialog.getByRole("button", { name: "Add" }).click();
      const grants = [{ namespace: "payroll", role: "editor" }];
      await ask(house, visit, "PATCH", "/users/gwen", { grants });
      await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
      await dialog.getByText("Version 2 came while this was open").waitFor();
      expect(await violations(page)).toEqual([]);
      await dialog.getByRole("button", { name: "Change", exact: true }).click();
      await dialog.getByText("Another user changed this user meanwhile.").waitFor();
      await dialog.getByRole("button", { name: "Cancel" }).click();
      await page.getByRole("listitem").filter({ hasText: "gwen" }).getByText("payroll: editor").waitFor();
      // Removes the browser's log entry of the refusal, because other tests check the same page's `complaints`.
      expect(visit.complaints.splice(0)).toEqual([expect.stringContaining("412")]);
    });

    test("begins with the schedule's payload, and takes another's by its name alone, whatever run ends meanwhile", async () => {
      const { page, go } = await house.visit({ as: "operator" });
      const dialog = page.getByRole("dialog");
      const { tower } = house.stage;
      const payload = dialog.getByLabel("Payload", { exact: true });
      const from = dialog.getByRole("combobox", { name: "Payload from" });
      const leave = dialog.getByRole("button", { name: "Cancel" });
      // The task's last run had a payload for one ledger; the schedule's payload is for all ledgers.
      await go("/tasks/settle-accounts");
      await page.getByRole("button", { name: "Run now" }).click();
      await payload.waitFor();
      expect(JSON.parse(await payload.inputValue())).toEqual({ ledger: "all" });
      expect(await from.inputValue()).toBe("the schedule");
      await leave.click();

      const first = await tower.enqueue("import-feed", { lines: 3 });
      await go(`/runs/${first.runId}`);
      await page.locator('[data-state="succeeded"]').first().waitFor();
      await go("/tasks/import-feed");
      await page.getByRole("button", { name: "Run now" }).click();
      await payload.waitFor();
      expect(await payload.inputValue()).toBe("");
      const { held, release } = hold();
      await page.route(/\/v1\/runs\/\d+$/, async (route) => {
        await held;
        await route.continue();
      });
      await from.click();
      await page.getByRole("option", { name: new RegExp(`^run ${first.runId} · a program · succeeded`) }).click();
      await payload.waitFor({ state: "detached" });
      expect(await dialog.getByRole("button", { name: "Run now" }).isDisabled()).toBe(true);
      release();
      await payload.waitFor();
      await unrouted(page);
      expect(JSON.parse(await payload.inputValue())).toEqual({ lines: 3 });
      expect(await violations(page)).toEqual([]);
      const later = await tower.enqueue("import-feed", { lines: 5 });
      await from.click();
      await page.getByRole("option", { name: new RegExp(`^run ${later.runId} · a program · succeeded`) }).waitFor();
      await page.keyboard.press("Escape");
      expect(JSON.parse(await payload.inputValue())).toEqual({ lines: 3 });
      if (await leave.isVisible()) await leave.click();
    });

    test("goes when the address names another task or run", async () => {
      const { page, go } = await house.visit({ as: "editor" });
      const dialog = page.getByRole("dialog");
      await go("/tasks/heartbeat");
      await heading(page, "heartbeat");
      await go("/tasks/warm-cache");
      await page.getByRole("button", { name: "Edit", exact: true }).click();
      await dialog.getByRole("heading", { name: /warm-cache/ }).waitFor();
      await page.goBack();
      await heading(page, "heartbeat");
      await dialog.waitFor({ state: "detached" });
      await go(`/runs/${house.runs.logRun}`);
      await heading(page, `Run ${house.runs.logRun}`);
      await go(`/runs/${house.runs.longRun}`);
      await page.getByRole("button", { name: "Run again" }).click();
      await dialog.waitFor();
      await page.goBack();
      await heading(page, `Run ${house.runs.logRun}`);
      await dialog.waitFor({ state: "detached" });
    });
  });

  describe("a time", () => {
    test("is asked for in the zone that times are shown in, which no other choice pins", async () => {
      const { page, go } = await house.visit({ as: "operator", preferences: { zone: "Asia/Tokyo" } });
      const dialog = page.getByRole("dialog");
      await go("/runs?since=2025-03-10T00:00:00.000Z");
      const since = page.getByLabel("From (Asia/Tokyo)");
      expect(await since.inputValue()).toBe("2025-03-10 09:00");
      expect(await violations(page)).toEqual([]);
      await since.fill("2025-03-10 1");
      expect(await since.getAttribute("aria-invalid")).toBe("true");
      await since.fill("2025-03-10 10:30");
      await page.waitForURL((url) => url.searchParams.get("since") === "2025-03-10T01:30:00.000Z");
      await go("/tasks/send-invoices");
      await page.getByRole("button", { name: "More actions" }).click();
      await page.getByRole("menuitem", { name: "Run past slots…" }).click();
      await dialog.getByText("Asia/Tokyo").first().waitFor();
      await dialog.getByLabel("From", { exact: true }).fill("2025-03-17 17:30");
      await dialog.getByLabel("To", { exact: true }).fill("2025-03-17 18:30");
      await dialog.getByText("send-invoices at Mon 17 Mar 2025 18:00").waitFor();
      await dialog.getByRole("button", { name: "Cancel" }).click();

      const plain = await house.visit({ as: "operator", width: 1_290 });
      await plain.go("/settings");
      await plain.page.getByRole("button", { name: "Colours: light. Press to change" }).click();
      await plain.page.getByRole("button", { name: "Colours: dark. Press to change" }).waitFor();
      const kept = await plain.page.evaluate(() => localStorage.getItem("carillon.preferences") ?? "");
      expect(JSON.parse(kept)).toEqual({ language: "en", scheme: "dark" });
    });
  });

  describe("the settings", () => {
    test("show where one is signed in, and end another browser's sign-in", async () => {
      const { page, go } = await house.visit({ as: "viewer" });
      await go("/settings");
      const { origin } = new URL(page.url());
      const headers = { "content-type": "application/json", origin, "user-agent": "the phone" };
      const body = JSON.stringify({ name: "viewer", password });
      const signedIn = await fetch(`${origin}/v1/sign-in`, { method: "POST", headers, body });
      const cookie = (signedIn.headers.getSetCookie()[0] ?? "").split(";")[0] as string;
      const status = async () => (await fetch(`${origin}/v1/me`, { headers: { cookie, origin } })).status;
      expect(await status()).toBe(200);
      await page.reload();
      const card = page.locator("section", { hasText: "Where you are signed in" });
      await card.getByText("this one").waitFor();
      await card.getByRole("listitem").filter({ hasText: "the phone" }).getByRole("button").click();
      await page.getByText("The sign-in has ended").waitFor();
      await card.getByText("the phone").waitFor({ state: "detached" });
      expect(await status()).toBe(401);
    });
  });

  describe("a dialog that is left", () => {
    const pauses = /\/v1\/tasks\/[^/]+\/pause$/;
    const reasonOf = (body: string | null) => (JSON.parse(body ?? "{}") as { reason?: string }).reason;

    test("stops before the next of many, and goes on with what is left after a refusal", async () => {
      const { page, go } = await house.visit({ as: "operator" });
      const dialog = page.getByRole("dialog");
      const paused: [name: string, reason: string | undefined][] = [];
      let onSecond: () => Promise<{ status: number; body: string }>;
      const done = { status: 200, body: JSON.stringify({ changed: true, running: [] }) };
      // The requests are answered here, so no task is paused; only the sent requests matter.
      await page.route(pauses, async (route) => {
        const name = new URL(route.request().url()).pathname.split("/")[3] as string;
        paused.push([name, reasonOf(route.request().postData())]);
        const answer = paused.length === 2 ? await onSecond() : done;
        await route.fulfill({ contentType: "application/json", ...answer });
      });
      const choose = async () => {
        await go("/tasks?matching=se");
        await page.getByRole("link", { name: "send-invoices" }).waitFor();
        await page.getByRole("link", { name: "heartbeat" }).waitFor({ state: "detached" });
        await page.getByRole("checkbox", { name: "Choose all that are shown" }).check();
        await page.getByRole("button", { name: "Pause", exact: true }).click();
        await dialog.getByText("Pause 3 tasks?").waitFor();
      };
      await choose();
      const { held, release } = hold();
      onSecond = () => held.then(() => done);
      await dialog.getByRole("button", { name: "Pause", exact: true }).click();
      await expect.poll(() => paused.length).toBe(2);
      await dialog.getByRole("button", { name: "Cancel" }).click();
      release();
      await page.getByText("Stopped: 2 of 3 are done, the others are left as they are").waitFor();
      expect(paused.length).toBe(2);

      paused.length = 0;
      const refusal = { code: "TASK_UNKNOWN", detail: "it was removed", hint: "Look." };
      onSecond = async () => ({ status: 404, body: JSON.stringify(refusal) });
      await go("/settings");
      await choose();
      await dialog.getByRole("button", { name: "Pause", exact: true }).click();
      await dialog.getByText("it was removed").waitFor();
      await dialog.getByLabel("Reason").fill("at once");
      await dialog.getByRole("button", { name: "Pause", exact: true }).click();
      await page.getByText("3 tasks paused").waitFor();
      expect(paused.map(([, reason]) => reason)).toEqual([undefined, undefined, "at once", "at once"]);
      expect(paused[2]?.[0]).toBe(paused[1]?.[0]);
      await unrouted(page);
    });

    test("leads nowhere later", async () => {
      const { page, go } = await house.visit({ as: "operator" });
      const dialog = page.getByRole("dialog");
      await go("/tasks/refund?part=runs");
      await go("/tasks/import-feed");
      const runs = /\/v1\/tasks\/import-feed\/runs$/;
      const { held, release } = hold();
      await page.route(runs, async (route) => {
        await held;
        await route.continue();
      });
      await page.getByRole("button", { name: "Run now" }).click();
      await dialog.getByRole("textbox", { name: "Payload" }).fill('{ "lines": 2 }');
      const sent = page.waitForRequest(runs);
      await dialog.getByRole("button", { name: "Run now" }).click();
      await sent;
      await dialog.getByRole("button", { name: "Cancel" }).click();
      await dialog.waitFor({ state: "detached" });
      release();
      await page.getByText(/^Run \d+ was made$/).waitFor();
      await settled(page);
      await heading(page, "import-feed");
      await unrouted(page);
    });

    test("does not change what may have been done: the same is sent again, or a version tells it apart", async () => {
      const { page, go } = await house.visit({ as: "editor" });
      const dialog = page.getByRole("dialog");
      await go("/tasks/nightly-report");
      await page.getByRole("button", { name: "Pause" }).click();
      await dialog.getByLabel("Reason").fill("the printer is away");
      await loseAnswer(page, pauses, "POST");
      await dialog.getByRole("button", { name: "Pause" }).click();
      await dialog.getByText("It may have been done all the same.").waitFor();
      expect(await dialog.getByLabel("Reason").isDisabled()).toBe(true);
      expect(await violations(page)).toEqual([]);
      await dialog.getByRole("button", { name: "Pause" }).click();
      await dialog.waitFor({ state: "detached" });
      await page.getByText("the printer is away").waitFor();
      await page.getByRole("button", { name: "Undo" }).last().click();
      await page.getByText(/Paused by editor/).waitFor({ state: "detached" });

      await page.getByRole("button", { name: "Edit", exact: true }).click();
      await dialog.getByLabel("Description").fill("Closes the day.");
      await dialog.getByLabel("Reason").fill("told");
      await loseAnswer(page, /\/v1\/tasks\/nightly-report$/, "PATCH");
      const save = dialog.getByRole("button", { name: "Save as a new version" });
      await save.click();
      await dialog.getByText("The server does not answer.").waitFor();
      await dialog.getByLabel("Reason").fill("told better");
      await save.click();
      await dialog.getByText("Another user changed the task meanwhile.").waitFor();
      await dialog.getByLabel("Reason").fill("told");
      await save.click();
      await dialog.waitFor({ state: "detached" });
      await page.getByText("Closes the day.").waitFor();
    });
  });

  describe("who may change what one namespace has", () => {
    test("has buttons for that, and none that would be refused", async () => {
      const admin = await house.visit();
      const grants = [{ namespace: "billing", role: "editor" }];
      await ask(house, admin, "POST", "/users", { name: "clerk", password, role: "viewer", grants });
      const options = { command: { argv: ["/bin/true"] } };
      await ask(house, admin, "PUT", "/tasks/billing%2Fsettle", { options });
      await ask(house, admin, "PATCH", "/tasks/heartbeat", { options: { priority: 6 } });
      const { page, go } = await house.visit({ as: "clerk" });
      const act = (name: string | RegExp) =>
        page.locator("#content").getByRole("button", { name, exact: true }).count();
      await go("/tasks/billing%2Fsettle");
      await page.getByRole("button", { name: "Run now" }).waitFor();
      expect(await act("Edit")).toBe(1);
      await go("/tasks/heartbeat?part=versions&from=1");
      await page.getByText("From 1 to 2").waitFor();
      expect([await act("Run now"), await act("Edit"), await act("Go back to 1")]).toEqual([0, 0, 0]);
      await go(`/runs/${house.runs.logRun}`);
      await page.getByText("part 3 of 120").waitFor();
      expect(await act("Run again")).toBe(0);
      await go("/workers");
      await page.getByText("rack=b4").waitFor();
      expect(await act(/^Change the limit/)).toBe(0);
      await go("/alarms");
      await page.getByText("Read its error and log").first().waitFor();
      expect([await act("Acknowledge"), await act("Send a test")]).toEqual([0, 0]);
      await page.getByRole("button", { name: "New silence…" }).click();
      const silence = page.getByRole("dialog").getByRole("button", { name: "Silence", exact: true });
      expect(await silence.isDisabled()).toBe(true);
      await page.getByRole("dialog").getByRole("combobox", { name: "Task" }).fill("billing/settle");
      await page.keyboard.press("Tab");
      await expect.poll(() => silence.isDisabled()).toBe(false);
      await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
      await go("/timeline?days=1");
      await page.getByText("*/15 * * * *").first().waitFor();
      expect(await act("Set later")).toBe(0);
    });
  });
}
