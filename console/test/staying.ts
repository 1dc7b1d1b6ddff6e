import type { Page, Request } from "playwright-core";
import { describe, expect, test } from "vitest";
import { type House, heading, hide, openContext, signIn, unrouted, violations } from "./support/house.ts";

/** Passes the server's answers for a path through `change`, and makes the page fetch again those that are older than 1 s. */
async function changed(page: Page, path: string, change: (answer: Record<string, unknown>) => object): Promise<void> {
  await page.route(
    (url) => url.pathname === path,
    async (route) => {
      const answer = (await (await route.fetch()).json()) as Record<string, unknown>;
      await route.fulfill({ json: change(answer) });
    },
  );
  await hide(page, false);
}

/** Tests for console.test.ts: content that stays while connections break, sign-ins end and data changes. */
export function whatStays(house: House): void {
  describe("what stays", () => {
    test("is the log of a run: its end without a word is no end, and a tab that nobody sees holds none", async () => {
      const { page, go } = await house.visit({ as: "operator" });
      const { runId } = await house.stage.tower.enqueue("import-feed", { lines: 1_000, holdMs: 150_000 });
      const tails: Request[] = [];
      page.on("request", (request) => /\/logs\/tail/.test(request.url()) && tails.push(request));
      let cut = 0;
      await page.route(/\/logs\/tail/, (route) =>
        cut++ < 2 ? route.fulfill({ body: "", contentType: "text/event-stream" }) : route.continue(),
      );
      await go(`/runs/${runId}`);
      const log = page.getByRole("log");
      const last = async () => Number(/part (\d+) of 1000(?!.*part)/s.exec(await log.innerText())?.[1] ?? 0);
      await log.waitFor();
      const first = await last();
      await expect.poll(last).toBeGreaterThan(first + 8);
      expect(tails.length).toBe(3);
      await hide(page, true);
      await expect.poll(() => tails.at(-1)?.failure()?.errorText).toContain("ABORTED");
      expect(tails.length).toBe(3);
      await hide(page, false);
      const before = await last();
      await expect.poll(last).toBeGreaterThan(before + 4);
      expect(new URL((tails[3] as Request).url()).searchParams.get("after")).toMatch(/./);
      const lines = await log.innerText();
      const told = [...lines.matchAll(/part (\d+) of 1000/g)].map(([, number]) => Number(number));
      expect(told).toEqual([...new Set(told)].sort((a, b) => a - b));
      await unrouted(page);
      await house.stage.tower.cancel(runId);
    });

    test("is what is typed, while the address takes it up", async () => {
      const { page, go } = await house.visit({ as: "operator" });
      await go("/tasks");
      const name = page.getByPlaceholder("Name, * stands for any text");
      await name.pressSequentially("report ");
      await page.waitForURL(/matching=report/);
      await page.getByRole("link", { name: "heartbeat" }).waitFor({ state: "detached" });
      expect(await name.inputValue()).toBe("report ");
      await page.getByRole("button", { name: "Clear" }).click();
      await expect.poll(() => name.inputValue()).toBe("");
      await go(`/runs/${house.runs.logRun}`);
      const find = page.getByRole("textbox", { name: "Find in the log" });
      await find.focus();
      // This simulates an input method: letters that are not final yet.
      const letters = await page.context().newCDPSession(page);
      for (const text of ["r", "re", "rej"])
        await letters.send("Input.imeSetComposition", { text, selectionStart: text.length, selectionEnd: text.length });
      await letters.send("Input.insertText", { text: "rejected" });
      await find.pressSequentially(" row 17");
      expect(await find.inputValue()).toBe("rejected row 17");
      await page.getByText("1 of 1", { exact: true }).waitFor();
      await page.waitForURL(/find=rejected\+row\+17/);
    });

    test("is a form whose user's sign-in ends meanwhile; another user begins anew", async () => {
      const context = await openContext(house.browser, { viewport: { width: 1_280, height: 800 } });
      const page = await context.newPage();
      const end = async () => {
        await context.clearCookies();
        // Retried, because becoming visible does not refetch answers that are less than a second old.
        const asksToSignIn = page.getByRole("heading", { name: "Sign in to Carillon" });
        await expect.poll(() => hide(page, false).then(() => asksToSignIn.count())).toBe(1);
      };
      await page.goto(`${house.stage.url}/tasks/warm-cache`);
      await signIn(page, "editor");
      await page.getByRole("button", { name: "Edit", exact: true }).click();
      const description = page.getByLabel("Description");
      await description.fill("Half a thought");
      await end();
      expect(await violations(page)).toEqual([]);
      await page.keyboard.press("Escape");
      await signIn(page, "editor");
      await page.getByRole("heading", { name: "Sign in to Carillon" }).waitFor({ state: "detached" });
      expect(await description.inputValue()).toBe("Half a thought");
      expect(await page.title()).toBe("warm-cache · Carillon");
      await page.getByText("1 change", { exact: true }).waitFor();
      await end();
      await signIn(page, "viewer");
      await page.getByRole("button", { name: "Account of viewer" }).waitFor();
      await heading(page, "warm-cache");
      expect(await description.count()).toBe(0);
      await context.close();
    });

    test("is a question, though what it was asked of leaves the list", async () => {
      const { page, go } = await house.visit({ as: "operator" });
      const dialog = page.getByRole("dialog");
      await go("/alarms");
      await page.getByRole("button", { name: "Silence…" }).first().click();
      await dialog.waitFor();
      await changed(page, "/v1/alarms", () => ({ items: [], next: null }));
      await page.getByText("Nothing is wrong").first().waitFor({ state: "attached" });
      expect(await dialog.count()).toBe(1);
      await unrouted(page);
      await page.keyboard.press("Escape");

      await go("/runs?task=sync-inventory&state=succeeded");
      await page.getByRole("button", { name: "Run all again…" }).click();
      await dialog.waitFor();
      await changed(page, "/v1/runs", () => ({ items: [], next: null }));
      await page.getByText("No run matches").waitFor({ state: "attached" });
      expect(await dialog.count()).toBe(1);
      await unrouted(page);
      await page.keyboard.press("Escape");

      // The open group stays open when another group is the largest, and an open dialog stays when its group disappears.
      await go("/dead-letters");
      const open = page.locator("ul [data-row][aria-current]");
      const words = await open.innerText();
      type Groups = { groups: { fingerprint: string; letters: number }[] };
      let gone = false;
      await changed(page, "/v1/dead-letters/groups", (answer) => {
        const [first, ...others] = (answer as Groups).groups;
        return { ...answer, groups: gone ? others : [...others, first] };
      });
      await page.locator("ul [data-row]").last().and(open).waitFor();
      expect(words).toContain((await open.innerText()).split("\n")[1]);
      await page.getByRole("button", { name: /^Run (?:it|all \d+) again$/ }).click();
      await dialog.waitFor();
      gone = true;
      await hide(page, false);
      await page.locator("ul [data-row]").first().and(open).waitFor({ state: "attached" });
      expect(await dialog.count()).toBe(1);
      await unrouted(page);
      await page.keyboard.press("Escape");
    });
  });

  describe("what is told", () => {
    test("of all that match is what the list shows", async () => {
      const { page, go } = await house.visit({ as: "operator" });
      const previewed: { kind: string; filter: Record<string, unknown> }[] = [];
      page.on("request", (request) => {
        if (/\/v1\/operations\/preview/.test(request.url())) previewed.push(request.postDataJSON());
      });
      const dialog = page.getByRole("dialog");
      const asks = async (button: string) => {
        await page.getByRole("button", { name: button }).click();
        await dialog.waitFor();
        await expect.poll(() => previewed.length).toBeGreaterThan(0);
        await page.keyboard.press("Escape");
        await dialog.waitFor({ state: "detached" });
        return previewed.splice(0).at(-1);
      };
      await go("/runs");
      const cancelled = await asks("Cancel all…");
      expect(cancelled?.filter).toEqual({
        states: expect.arrayContaining(["ready", "claimed", "held", "paused", "undecided"]),
        until: expect.stringMatching(/Z$/),
      });
      expect((await asks("Run all again…"))?.filter).toEqual({
        states: ["succeeded", "failed", "cancelled", "skipped"],
      });
      await go("/runs?state=ready");
      expect((await asks("Cancel all…"))?.filter).toEqual({ states: ["ready"] });

      // Tasks that a changed filter hides are no longer selected. A list of paused tasks offers only the act "resume".
      await go("/tasks");
      await page
        .getByRole("row", { name: /heartbeat/ })
        .getByRole("checkbox")
        .check();
      await page.getByText("1 chosen").waitFor();
      await page.getByText("Active", { exact: true }).click();
      await page.getByText("1 chosen").waitFor({ state: "detached" });
      await page.getByRole("button", { name: "Pause all…" }).waitFor();
      expect(await page.getByRole("button", { name: "Resume all…" }).count()).toBe(0);
    });

    test("of more than were read is that there are more", async () => {
      const { page, go } = await house.visit({ as: "operator" });
      await changed(page, "/v1/workers", (answer) => ({ ...answer, next: "more" }));
      await page.route(
        (url) => url.pathname === "/v1/runs" && url.searchParams.get("state") === "ready",
        (route) => {
          const due = new Date(Date.now() - 600_000).toISOString();
          const item = { task: "heartbeat", due, state: "ready", started: null, ended: null, lateMs: null };
          const items = Array.from({ length: 100 }, (_, at) => ({ ...item, run: 900_000_000 + at }));
          return route.fulfill({ json: { items, next: "more" } });
        },
      );
      await go("/");
      await page.getByText("100+ runs are overdue.").waitFor();
      await page.getByRole("link", { name: /^Workers\s*1\+/ }).waitFor();
      await unrouted(page);
    });

    test("of an undo that fails is why", async () => {
      const { page, go } = await house.visit({ as: "operator" });
      await go("/workers");
      await page.getByRole("button", { name: "Change the limit of default" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByLabel("Limit").fill("900");
      await dialog.getByRole("button", { name: "Change" }).click();
      await dialog.waitFor({ state: "detached" });
      const problem = { code: "STORE_UNREACHABLE", detail: "the store is away for a while" };
      await page.route(/\/limit/, (route) => route.fulfill({ status: 503, json: problem }));
      await page.getByRole("button", { name: "Undo" }).click();
      await page.getByText("the store is away for a while").waitFor();
      await unrouted(page);
    });

    test("of an operation is asked no more once it is over", async () => {
      const { page, go } = await house.visit({ as: "operator" });
      await go("/tasks?matching=nightly-report");
      await page.getByRole("button", { name: "Resume all…" }).waitFor();
      await page.getByRole("button", { name: "Pause all…" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByRole("button", { name: "Pause" }).click();
      await dialog.getByText("done · 1 of 1").waitFor();
      let asked = 0;
      page.on("request", (request) => {
        if (/\/v1\/operations\/\d+$/.test(request.url())) asked++;
      });
      // A late event may invalidate the answer once, which causes one more request; polling would cause more within 2 s.
      const askedMeanwhile = async () => {
        asked = 0;
        await page.waitForTimeout(2_000);
        return asked;
      };
      await expect.poll(askedMeanwhile).toBeLessThan(2);
      await dialog.getByRole("button", { name: "Close" }).last().click();
      await house.stage.tower.resume("nightly-report");
    });
  });
}
