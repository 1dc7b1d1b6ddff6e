import { describe, expect, test } from "vitest";
import { type House, heading, violations } from "./support/house.ts";

const dayMs = 86_400_000;
const year = new Date().getUTCFullYear() + 1;
const ics = [
  "BEGIN:VCALENDAR",
  "VERSION:2.0",
  "PRODID:-//test//EN",
  "BEGIN:VEVENT",
  "UID:1",
  "DTSTAMP:20200101T000000Z",
  "DTSTART;VALUE=DATE:20201225",
  "RRULE:FREQ=YEARLY",
  "RRULE:FREQ=YEARLY;RSCALE=HEBREW",
  "SUMMARY:Christmas",
  "END:VEVENT",
  "END:VCALENDAR",
  "",
].join("\r\n");

/** A Tuesday in March of `year`, as a date text: a working day in the future. */
function someTuesday(): string {
  let ms = Date.UTC(year, 2, 1);
  while (new Date(ms).getUTCDay() !== 2) ms += dayMs;
  return new Date(ms).toISOString().slice(0, 10);
}
const dayAfter = (day: string, by = 1) => new Date(Date.parse(day) + by * dayMs).toISOString().slice(0, 10);

/** Tests for console.test.ts: calendars, users, tokens, worker keys, secrets and quotas. */
export function calendarsAndAccess(house: House): void {
  describe("calendars", () => {
    test("are made from a file, edited day by day, and told by what they take from whom", async () => {
      const { page, context, go } = await house.visit({ as: "editor" });
      const dialog = page.getByRole("dialog");
      await go("/calendars");
      await page.getByRole("button", { name: "New calendar" }).click();
      await dialog.getByLabel("Name", { exact: true }).fill("de");
      await dialog.locator('input[type="file"]').setInputFiles({
        name: "holidays.ics",
        mimeType: "text/calendar",
        buffer: Buffer.from(ics),
      });
      expect(await violations(page)).toEqual([]);
      await dialog.getByRole("button", { name: "Make it" }).click();
      await heading(page, "de");
      await page.getByText("line 9, RRULE: RSCALE=HEBREW is not supported").waitFor();
      // Other toasts may be open too. This one is closed, because it stays until then and would cover buttons that are clicked later.
      const partly = page.getByRole("status").locator("div", { hasText: "Parts of the file are not carried out" });
      await partly.getByRole("button", { name: "Close" }).click();
      await page.getByRole("button", { name: "The year after" }).click();
      await page.waitForURL(new RegExp(`year=${year}`));
      await page.getByTitle(`${year}-12-25 · holiday`).waitFor();
      await page.getByText("No task goes by it").waitFor();

      const options = { calendar: { name: "de", otherwise: "next" } };
      const edited = await context.request.patch(`${house.stage.url}/v1/tasks/nightly-report`, {
        headers: { origin: house.stage.url, "if-match": "*" },
        data: { options },
      });
      expect(edited.status()).toBe(200);
      await page.getByText("runs on worked days, others move to the next").waitFor();
      await page.getByText(new RegExp(`It takes \\d+ days of ${year}\\.`)).waitFor();

      const day = someTuesday();
      await page.getByRole("button", { name: "Edit", exact: true }).click();
      await page.locator(`button[title^="${day}"]`).click();
      // By keyboard: the focus moves to the next day, which is then toggled too.
      await page.keyboard.press("ArrowRight");
      await page.keyboard.press("Enter");
      await page.getByText("2 holidays more · 0 fewer").waitFor();
      await page.getByText("taken").nth(1).waitFor();
      const compared = page.getByRole("region", { name: "What saving changes" });
      await compared.getByText("holiday", { exact: true }).nth(1).waitFor();
      await compared.getByText(/slots? of a year ahead change/).waitFor();
      // A day from an iCalendar file is shown with its name from the file.
      await page.locator(`button[title^="${year}-12-25"]`).click();
      await compared.getByText("Christmas").waitFor();
      await compared.getByText("no holiday any more").waitFor();
      expect(await violations(page)).toEqual([]);
      await page.locator(`button[title^="${year}-12-25"]`).click();
      await page.getByPlaceholder("Reason").fill("the town's fair");
      await page.getByRole("button", { name: "Save as a new version" }).click();
      await page.getByText("de is at version 2").waitFor();
      await page.getByTitle(`${dayAfter(day)} · holiday`).waitFor();

      await page.getByRole("button", { name: /^1 editor/ }).click();
      await page.waitForURL(/version=1/);
      await page.getByTitle(`${day} · worked`).waitFor();
      await page.locator("ins", { hasText: `${day}, ${dayAfter(day)}` }).waitFor();
      await page.getByRole("button", { name: "Go back to 1" }).click();
      await dialog.getByText(/the task that uses the calendar is planned anew/).waitFor();
      await dialog.getByRole("button", { name: "Revert" }).click();
      await page.getByRole("button", { name: /^3 editor present/ }).waitFor();
      // The calendar is used, so it cannot be removed; and a second calendar of the same name is refused.
      expect(await page.getByRole("button", { name: "Remove" }).count()).toBe(0);
      await go("/calendars");
      await page.getByText("1 task", { exact: true }).waitFor();
      await page.getByRole("button", { name: "New calendar" }).click();
      await dialog.getByLabel("Name", { exact: true }).fill("de");
      await dialog.getByRole("button", { name: "Make it" }).click();
      await dialog.getByText(/There is such a calendar/).waitFor();
      await page.keyboard.press("Escape");
    });
  });

  describe("access", () => {
    test("makes, changes, locks out and removes users", async () => {
      // A separate page, because the browser logs the refusals of this test as errors.
      const { page, go } = await house.visit({ width: 1_300 });
      const dialog = page.getByRole("dialog");
      const row = page.getByRole("listitem").filter({ hasText: "cleo" });
      await go("/access");
      await page.getByRole("button", { name: "New user" }).click();
      await dialog.getByLabel("Name", { exact: true }).fill("cleo");
      await dialog.getByLabel("Password", { exact: true }).fill("short");
      await dialog.getByPlaceholder("Namespace").fill("billing");
      await dialog.getByRole("button", { name: "Add" }).click();
      await dialog.getByRole("button", { name: "Make it" }).click();
      await dialog.getByText("The password is too easy to guess.").waitFor();
      expect(await violations(page)).toEqual([]);
      await dialog.getByRole("button", { name: "Draw another" }).click();
      expect(await dialog.getByLabel("Password", { exact: true }).inputValue()).toMatch(/^\w{20}$/);
      await dialog.getByRole("button", { name: "Make it" }).click();
      await row.getByText("billing: viewer").waitFor();

      await page.getByRole("button", { name: "Change cleo" }).click();
      await dialog.getByRole("button", { name: "Take billing away" }).click();
      await dialog.getByRole("button", { name: "Change", exact: true }).click();
      await row.getByText("billing: viewer").waitFor({ state: "detached" });
      await page.getByRole("button", { name: "More for cleo" }).click();
      await page.getByRole("menuitem", { name: "Lock out" }).click();
      await dialog.getByRole("button", { name: "Lock out" }).click();
      await row.getByText("locked out").waitFor();
      await page.getByRole("button", { name: "Undo" }).last().click();
      await row.getByText("locked out").waitFor({ state: "detached" });
      await page.getByRole("button", { name: "More for cleo" }).click();
      await page.getByRole("menuitem", { name: "Remove…" }).click();
      await dialog.getByRole("button", { name: "Remove" }).click();
      await row.waitFor({ state: "detached" });
    });

    test("shows a token and a worker key once, and locks out who has one", async () => {
      const { page, go } = await house.visit();
      const dialog = page.getByRole("dialog");
      await go("/access?part=tokens");
      await page.getByRole("button", { name: "New token" }).click();
      await dialog.getByLabel("Name", { exact: true }).fill("ci");
      await dialog.getByRole("button", { name: "Make it" }).click();
      await dialog.getByText("Copy it now.").waitFor();
      expect(await violations(page)).toEqual([]);
      const secret = (await dialog.locator("[data-secret]").textContent()) ?? "";
      const ask = () => fetch(`${house.stage.url}/v1/me`, { headers: { authorization: `Bearer ${secret}` } });
      expect([(await ask()).status, (await (await ask()).json()).role]).toEqual([200, "viewer"]);
      await dialog.getByRole("button", { name: "I have it" }).click();
      await page.getByRole("button", { name: "Revoke ci" }).click();
      await dialog.getByRole("button", { name: "Revoke" }).click();
      await page.getByRole("button", { name: "Revoke ci" }).waitFor({ state: "detached" });
      expect((await ask()).status).toBe(401);
      await page.getByRole("switch", { name: "Also what has ended" }).click();
      await page.waitForURL(/ended=shown/);
      await page.getByText("revoked", { exact: true }).waitFor();

      await page.getByRole("tab", { name: "Worker keys" }).click();
      await page.getByRole("button", { name: "New worker key" }).click();
      await dialog.getByLabel("Name", { exact: true }).fill("warehouse-7");
      await dialog.getByRole("button", { name: "Make it" }).click();
      expect(await dialog.locator("[data-secret]").textContent()).toMatch(/^ck_/);
      await dialog.getByRole("button", { name: "I have it" }).click();
      await page.getByRole("button", { name: "Revoke warehouse-7" }).click();
      await dialog.getByRole("button", { name: "Revoke" }).click();
      await page.getByRole("button", { name: "Revoke warehouse-7" }).waitFor({ state: "detached" });
      await page.goBack();
      await page.getByRole("tab", { name: "Tokens", selected: true }).waitFor();
    });

    test("stores secrets that it cannot show, and removes them", async () => {
      const { page, go } = await house.visit();
      const dialog = page.getByRole("dialog");
      await go("/access?part=secrets");
      await page.getByText("No secrets").waitFor();
      await page.getByRole("button", { name: "New secret" }).click();
      await dialog.getByLabel("Name", { exact: true }).fill("bank-token");
      await dialog.getByLabel("Value").fill("a very secret value");
      await dialog.getByLabel("Tasks", { exact: true }).fill("settle-accounts");
      await page.keyboard.press("Enter");
      await dialog.getByRole("button", { name: "Store it" }).click();
      await page.getByText("version 1", { exact: true }).waitFor();
      await page.getByRole("button", { name: "Replace bank-token" }).click();
      await dialog.getByLabel("Value").fill("another secret value");
      expect(await violations(page)).toEqual([]);
      await dialog.getByRole("button", { name: "Store it" }).click();
      await page.getByText("version 2", { exact: true }).waitFor();
      expect(await page.content()).not.toContain("secret value");
      await page.getByRole("button", { name: "Remove bank-token" }).click();
      await dialog.getByRole("button", { name: "Remove" }).click();
      await page.getByText("No secrets").waitFor();
    });

    test("makes incoming webhooks, shows what a request would enqueue, and a new secret once", async () => {
      const { page, context, go } = await house.visit();
      const dialog = page.getByRole("dialog");
      const headers = { origin: house.stage.url };
      const put = await context.request.put(`${house.stage.url}/v1/secrets/hook-secret`, {
        headers,
        data: { value: "a first secret", tasks: ["sync-inventory"] },
      });
      expect(put.status()).toBe(200);
      await go("/access?part=hooks");
      await page.getByText("No hooks").waitFor();
      await page.getByRole("button", { name: "New hook" }).click();
      await dialog.getByLabel("Name", { exact: true }).fill("pushes");
      await dialog.getByLabel("Stored secret").fill("hook-secret");
      await dialog.getByLabel("Task", { exact: true }).fill("sync-inventory");
      await dialog.getByLabel("Payload").fill("/after");
      expect(await violations(page)).toEqual([]);
      await dialog.getByRole("button", { name: "Store it" }).click();

      await page.getByRole("button", { name: "Try…: pushes" }).click();
      await dialog.getByLabel("Headers").fill("X-GitHub-Delivery: d-1");
      await dialog.getByLabel("Body").fill('{ "after": "c0ffee" }');
      await dialog.getByRole("button", { name: "Try…" }).click();
      await dialog.getByText('"key": "pushes#d-1"').waitFor();
      expect(await violations(page)).toEqual([]);
      await page.keyboard.press("Escape");

      await page.getByRole("button", { name: "New secret…: pushes" }).click();
      await dialog.getByRole("button", { name: "New secret…" }).click();
      const secret = (await dialog.locator("[data-secret]").textContent()) ?? "";
      expect(secret).toMatch(/^[\da-f]{64}$/);
      await dialog.getByRole("button", { name: "I have it" }).click();
      expect(await page.content()).not.toContain(secret);
      await page.getByRole("switch", { name: "Turn pushes on or off" }).press("Space");
      await expect
        .poll(async () => (await context.request.get(`${house.stage.url}/v1/hooks/pushes`)).json())
        .toMatchObject({ enabled: false, payload: "/after" });
      await page.getByRole("button", { name: "Remove…: pushes" }).click();
      await dialog.getByRole("button", { name: "Remove…" }).click();
      await page.getByText("No hooks").waitFor();
      await context.request.delete(`${house.stage.url}/v1/secrets/hook-secret`, { headers });
    });

    test("says how much a namespace may take, and how much it does", async () => {
      const { page, go } = await house.visit();
      const dialog = page.getByRole("dialog");
      await go("/access?part=quotas");
      await page.getByText("No quotas").waitFor();
      await page.getByRole("button", { name: "New quota" }).click();
      await dialog.getByLabel("Name", { exact: true }).fill("payroll");
      await dialog.getByLabel("Runs a minute").fill("many");
      expect(await dialog.getByRole("button", { name: "Store it" }).isDisabled()).toBe(true);
      await dialog.getByLabel("Runs a minute").fill("600");
      expect(await violations(page)).toEqual([]);
      await dialog.getByRole("button", { name: "Store it" }).click();
      await page.getByText("Runs a minute 0 of 600").waitFor();
      await page.getByRole("button", { name: "Change namespace payroll" }).click();
      expect(await dialog.getByLabel("Runs a minute").inputValue()).toBe("600");
      await dialog.getByLabel("Runs a minute").fill("");
      await dialog.getByRole("button", { name: "Store it" }).click();
      await page.getByText("No quotas").waitFor();
    });

    test("is shown by parts to who may see them", async () => {
      const { page, go } = await house.visit({ as: "viewer" });
      await go("/access?part=users");
      await page.getByRole("tab", { name: "Tokens", selected: true }).waitFor();
      expect(await page.getByRole("tab").allTextContents()).toEqual(["Tokens", "Hooks", "Quotas", "Signing in"]);
      await go("/calendars/de");
      await page.getByRole("button", { name: /present/ }).waitFor();
      expect(await page.getByRole("button", { name: "Edit", exact: true }).count()).toBe(0);
    });
  });
}
