import { describe, expect, test } from "vitest";
import { type House, heading, settled, unrouted, violations } from "./support/house.ts";

/** Tests for console.test.ts: times, lists of runs, logs, the audit, printing, the timeline on a phone, and the command palette. */
export function whatIsRead(house: House): void {
  describe("a time", () => {
    test("is written with its year, in the zone that the page names, and far ahead as a date", async () => {
      const { page, go } = await house.visit({ as: "operator", preferences: { zone: "Asia/Tokyo" } });
      const { runId } = await house.stage.tower.enqueue(
        "import-feed",
        { lines: 1 },
        { at: new Date("2046-03-11T16:00:00Z") },
      );
      await go(`/runs/${runId}`);
      const content = page.locator("#content");
      await content.getByText("Mon 12 Mar 2046", { exact: true }).first().waitFor();
      await content.getByText("Mon 12 Mar 2046 01:00:00.000").first().waitFor();
      await page.locator("header").getByText("Tokyo", { exact: true }).waitFor();
      await go("/runs?task=import-feed&state=ready");
      await content.getByText("Mon 12 Mar 2046", { exact: true }).first().waitFor();
      for (const path of [
        "/",
        "/tasks",
        `/runs/${runId}`,
        "/runs",
        "/timeline",
        "/alarms",
        "/nodes",
        "/dead-letters",
      ]) {
        await go(path);
        await settled(page);
        // The page shows no date with slashes, no relative time above 99 days, and no instant in UTC while the zone is Asia/Tokyo.
        const wrong = /\d{1,2}\/\d{1,2}\/\d{4}|(?:in|ago) \d[\d,]{2,} d\b|\d T?\d\d:\d\d:\d\d(?:\.\d+)?Z/g;
        expect([path, (await content.innerText()).match(wrong)]).toEqual([path, null]);
      }
      await house.stage.tower.cancel(runId);
    });

    test("can be typed as people say it", async () => {
      const { page, go } = await house.visit({ as: "operator" });
      await go("/tasks/purge-sessions");
      await page.getByRole("button", { name: "Pause", exact: true }).click();
      const until = page.getByRole("dialog").getByLabel(/^Until/);
      await until.fill("18:0");
      expect(await until.getAttribute("aria-invalid")).toBe("true");
      await until.fill("18:00");
      expect(await until.getAttribute("aria-invalid")).not.toBe("true");
      await page.getByRole("dialog").getByLabel("Reason").focus();
      expect(await until.inputValue()).toMatch(/^\d{4}-\d\d-\d\d 18:00$/);
      await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
    });
  });

  describe("a list of runs", () => {
    test("is narrowed by a part of a name and by a named range, and no filter is refused", async () => {
      const { page, go } = await house.visit({ as: "operator" });
      const asked: URL[] = [];
      page.on("request", (request) => {
        const url = new URL(request.url());
        if (url.pathname === "/v1/runs") asked.push(url);
      });
      await go("/runs");
      const rows = page.locator("#content").getByRole("row");
      await rows.getByRole("link", { name: "heartbeat" }).first().waitFor();
      await page.getByPlaceholder("Task, * stands for any text").fill("inventory");
      await page.waitForURL(/matching=inventory/);
      await rows.getByRole("link", { name: "heartbeat" }).first().waitFor({ state: "detached" });
      await rows.getByRole("link", { name: "sync-inventory" }).first().waitFor();
      // The act on all matching runs has the same name filter as the list.
      await page.getByRole("button", { name: "Run all again…" }).click();
      await page.getByRole("dialog").getByText("*inventory*").waitFor();
      await page.keyboard.press("Escape");

      await page.getByRole("combobox", { name: "Time" }).click();
      await page.getByRole("option", { name: "Yesterday" }).click();
      await page.waitForURL(/within=yesterday/);
      await page.getByText("No run matches").waitFor();
      const { searchParams } = asked.at(-1) as URL;
      const span = Date.parse(searchParams.get("until") ?? "") - Date.parse(searchParams.get("since") ?? "");
      expect([23, 24, 25].map((hours) => hours * 3_600_000)).toContain(span);
      expect(await violations(page)).toEqual([]);
      await page.getByRole("combobox", { name: "Time" }).click();
      await page.getByRole("option", { name: "Last 24 hours" }).click();
      await rows.getByRole("link", { name: "sync-inventory" }).first().waitFor();
      for (const path of ["/runs?since=soon", "/runs?within=never&until=9", "/runs?matching=%F0%9F%92%A9'\"%25_"]) {
        await go(path);
        await page
          .locator("#content")
          .getByText(/No run matches|heartbeat/)
          .first()
          .waitFor();
        expect([path, await page.locator("#content").getByRole("alert").count()]).toEqual([path, 0]);
      }
    });
  });

  describe("a run's page", () => {
    test("has its log above the details, which can be downloaded as it is shown", async () => {
      const { page, go } = await house.visit({ as: "viewer" });
      await go(`/runs/${house.runs.logRun}`);
      const log = page.getByRole("log");
      await log.getByText("part 3 of 120").waitFor();
      const details = page.getByRole("heading", { name: "Details" });
      const [above, below] = [await log.boundingBox(), await details.boundingBox()];
      expect((above?.y ?? 0) < (below?.y ?? 0)).toBe(true);
      const take = async () => {
        const [file] = await Promise.all([
          page.waitForEvent("download"),
          page.getByRole("button", { name: "Download" }).click(),
        ]);
        const chunks: Buffer[] = [];
        for await (const chunk of await file.createReadStream()) chunks.push(chunk as Buffer);
        return { name: file.suggestedFilename(), lines: Buffer.concat(chunks).toString().trimEnd().split("\n") };
      };
      const whole = await take();
      expect(whole.name).toBe(`run-${house.runs.logRun}.log`);
      expect(whole.lines).toHaveLength(121);
      expect(whole.lines[1]).toMatch(/^\d{4}-.*Z INFO {2}#1 part 1 of 120 ok$/);
      await page.getByText("error", { exact: true }).first().click();
      await page.waitForURL(/level=error/);
      const errors = await take();
      expect(errors.lines.length).toBeGreaterThan(3);
      expect(errors.lines.filter((line) => !line.includes(" ERROR #1 rejected row "))).toEqual([]);
      // A run with one attempt has no select for attempts; with two, the log can be filtered by attempt.
      expect(await page.getByRole("combobox", { name: "Attempt" }).count()).toBe(0);
      const asked: URL[] = [];
      page.on(
        "request",
        (request) => /\/logs$/.test(new URL(request.url()).pathname) && asked.push(new URL(request.url())),
      );
      await page.route(
        (url) => url.pathname === `/v1/runs/${house.runs.logRun}`,
        async (route) => route.fulfill({ json: { ...(await (await route.fetch()).json()), attempt: 2 } }),
      );
      await page.goto(`${house.stage.url}/runs/${house.runs.logRun}?attempt=2`);
      await page.getByText("No line of this level and attempt.").waitFor();
      expect(asked.at(-1)?.searchParams.get("attempt")).toBe("2");
      await page.getByRole("combobox", { name: "Attempt" }).click();
      await page.getByRole("option", { name: "Attempt 1" }).click();
      await log.getByText("part 3 of 120").waitFor();
      expect(await violations(page)).toEqual([]);
      await unrouted(page);
    });
  });

  describe("a search in a long log", () => {
    test("goes on from the last loaded hit to the next one at the first press", async () => {
      const { page, go } = await house.visit({ as: "viewer" });
      await go(`/runs/${house.runs.longRun}?find=part`);
      const hits = page.getByRole("search").getByRole("status");
      await expect.poll(() => hits.innerText()).toBe("1 of 500+");
      await page.getByRole("button", { name: "Hit before" }).click();
      await expect.poll(() => hits.innerText()).toBe("500 of 500+");
      await page.getByRole("button", { name: "Next hit" }).click();
      await expect.poll(() => hits.innerText()).toBe("501 of 1,000+");
      await page.locator("[data-hit]").waitFor();
    });
  });

  describe("a slot that is far away", () => {
    test("has one date, that of the task's zone, and names the zone", async () => {
      const { page, go } = await house.visit({ as: "viewer", preferences: { zone: "America/New_York" } });
      await go("/tasks/settle-accounts");
      const row = page.getByRole("region", { name: "Next 20 slots" }).getByRole("row").last();
      await page.getByRole("region", { name: "Next 20 slots" }).getByRole("row").nth(20).waitFor();
      const [own = "", , away = ""] = await row.getByRole("cell").allInnerTexts();
      // The slots are at 00:00 in Shanghai, which is the day before in New York.
      const [day] = own.split(" 00:00");
      expect(away).toBe(day);
      await page.getByRole("columnheader", { name: "Away · Asia/Shanghai" }).waitFor();
    });
  });

  describe("the log of a run that has just ended", () => {
    test("takes the lines that the worker sends after the run's end", async () => {
      const { page, go } = await house.visit({ as: "viewer" });
      await go("/runs");
      const read = async (path: string) =>
        (await page.evaluate(async (path) => (await fetch(path)).json(), `/v1/runs/${path}`)) as {
          state: string;
          items: object[];
          tail: string;
        };
      const { tail } = await read(`${house.runs.logRun}/logs?limit=1`);
      const { runId } = await house.stage.tower.enqueue("import-feed", { lines: 2 });
      await expect.poll(async () => (await read(`${runId}/logs`)).items.length).toBe(3);
      await expect.poll(async () => (await read(`${runId}`)).state).toBe("succeeded");
      // Simulates the log between the run's end and the arrival of its last lines, which a worker sends a moment later.
      await page.route(
        (url) => url.pathname === `/v1/runs/${runId}/logs`,
        (route) => route.fulfill({ json: { items: [], next: null, tail } }),
      );
      await go(`/runs/${runId}`);
      await page.getByRole("log").getByText("part 2 of 2").waitFor();
      await unrouted(page);
    });
  });

  describe("a run under way", () => {
    test("shows its progress as a bar", async () => {
      const { page, go } = await house.visit({ as: "viewer" });
      const { runId } = await house.stage.tower.enqueue("import-feed", { lines: 400, holdMs: 600_000 });
      await go(`/runs/${runId}`);
      await page.getByRole("progressbar", { name: "Progress" }).waitFor();
      await page.getByText(/^\d of 400 · 1%$/).waitFor();
      expect(await violations(page)).toEqual([]);
      await house.stage.tower.cancel(runId);
    });
  });

  describe("a pause", () => {
    test("ends at a time that one press chooses", async () => {
      const { page, go } = await house.visit({ as: "operator" });
      await go("/tasks/purge-sessions");
      await page.getByRole("button", { name: "Pause", exact: true }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByRole("button", { name: "next 18:00" }).click();
      await expect.poll(() => dialog.getByLabel(/^Until/).inputValue()).toMatch(/ 18:00$/);
      expect(await violations(page)).toEqual([]);
      await dialog.getByRole("button", { name: "Pause", exact: true }).click();
      await page.getByText(/^Paused by operator/).waitFor();
      await page
        .getByText(/18:00:00/)
        .first()
        .waitFor();
      await page.getByRole("button", { name: "Undo" }).click();
      await page.getByText(/^Paused by operator/).waitFor({ state: "detached" });
    });

    test("of all tasks is not one press away on a phone", async () => {
      const { page, go } = await house.visit({ as: "operator", width: 390, height: 844 });
      await go("/tasks");
      const all = page.getByRole("button", { name: "Pause all…" });
      await page.getByText("Act on all…").waitFor();
      expect(await all.isVisible()).toBe(false);
      await page.getByText("Act on all…").click();
      await all.waitFor();
      expect(await violations(page)).toEqual([]);
      await page.getByText("Act on all…").click();
    });
  });

  describe("the audit", () => {
    test("names the task of a run, and makes one line of what one act did to many", async () => {
      const { page, go } = await house.visit();
      for (let n = 0; n < 5; n++) await house.stage.tower.enqueue("warm-cache", null, { in: "6h" });
      await go("/runs?task=warm-cache&state=ready");
      const boxes = page.locator("#content").getByRole("checkbox", { name: /^Choose \d+$/ });
      await expect.poll(() => boxes.count()).toBeGreaterThan(4);
      await page.getByRole("checkbox", { name: "Choose all that are shown" }).check();
      await page.getByRole("button", { name: "Cancel them" }).click();
      await page.getByRole("dialog").getByLabel("Reason").fill("five by hand");
      await page.getByRole("dialog").getByRole("button", { name: "Cancel the run" }).click();
      await page.getByRole("dialog").waitFor({ state: "detached" });
      await go("/audit?about=run&act=cancel");
      const lines = page.locator("#content").getByRole("button", { name: /five by hand/ });
      await lines.first().waitFor();
      expect(await lines.count()).toBe(1);
      expect(await lines.innerText()).toMatch(/cancelled\s+\d+ runs\s*warm-cache/);
      await lines.click();
      await page
        .getByRole("button", { name: /run \d+ of warm-cache/ })
        .first()
        .waitFor();
      expect(await violations(page)).toEqual([]);
    });
  });

  describe("a worker that was killed", () => {
    test("is told of, and nothing was heard of in the future", async () => {
      const { page, go } = await house.visit({ as: "viewer" });
      const soon = new Date(Date.now() + 90_000).toISOString();
      const ago = new Date(Date.now() - 600_000).toISOString();
      const lost = { node: "gone-1", role: "worker", host: "rack-7", pid: 11, groups: ["default"], started: ago };
      await page.route(
        (url) => url.pathname === "/v1/lost-workers",
        (route) =>
          route.fulfill({
            json: { lost: [{ ...lost, seen: ago, ended: ago, why: "silent for 15000 ms, seen by atlas" }] },
          }),
      );
      await page.route(
        (url) => url.pathname === "/v1/workers",
        async (route) => {
          const answer = (await (await route.fetch()).json()) as { items: object[] };
          await route.fulfill({ json: { ...answer, items: answer.items.map((one) => ({ ...one, seen: soon })) } });
        },
      );
      await go("/workers");
      await page.getByRole("row", { name: /gone-1.*rack-7.*10 min ago.*silent for 15000 ms/ }).waitFor();
      await page.getByText("Last heartbeat").first().waitFor();
      expect(await page.locator("#content").innerText()).not.toMatch(/Last heartbeat\s+in /);
      expect(await violations(page)).toEqual([]);
      await unrouted(page);
    });
  });

  describe("a page on paper", () => {
    test("is whole, white, and without what is for a hand", async () => {
      const { page, go } = await house.visit({ as: "viewer", preferences: { scheme: "dark" } });
      await go("/runs?task=sync-inventory");
      const rows = page.locator("#content").getByRole("row");
      await rows.getByRole("link", { name: /^\d+$/ }).first().waitFor();
      const inList = Number(await page.getByRole("table").getAttribute("aria-rowcount"));
      expect(inList).toBeGreaterThan(20);
      await page.emulateMedia({ media: "print" });
      await expect.poll(() => rows.count()).toBe(inList);
      expect(await page.locator("header").isVisible()).toBe(false);
      expect(await page.locator("nav").first().isVisible()).toBe(false);
      const found = await page.evaluate(() => ({
        ground: getComputedStyle(document.body).backgroundColor,
        scrolled: [...document.querySelectorAll("#content, #content *")].filter(
          (one) => one.scrollHeight > one.clientHeight + 4 && /auto|scroll/.test(getComputedStyle(one).overflowY),
        ).length,
        tall: document.documentElement.scrollHeight > document.documentElement.clientHeight,
      }));
      expect(found).toEqual({ ground: "rgb(245, 246, 248)", scrolled: 0, tall: true });
      await page.emulateMedia({ media: "screen" });
    });
  });

  describe("the fullest minutes beside the hour", () => {
    test("have a line each, with nothing cut", async () => {
      const { page, go } = await house.visit({ as: "viewer", width: 1_024 });
      await go("/timeline");
      const rows = page.locator("section", { has: page.getByRole("heading", { name: "Fullest minutes" }) });
      await rows.last().getByRole("button").first().waitFor();
      const broken = await rows
        .last()
        .getByRole("button")
        .evaluateAll((buttons) =>
          buttons
            .filter((one) => one.clientHeight > 40 || one.scrollWidth > one.clientWidth)
            .map((one) => one.textContent),
        );
      expect(broken).toEqual([]);
    });
  });

  describe("the timeline on a phone", () => {
    test("begins at the present hour", async () => {
      const { page, go } = await house.visit({ as: "viewer", width: 390, height: 844, preferences: { zone: "UTC" } });
      await go("/timeline");
      const cell = page.locator("[data-cell]").first();
      await cell.waitFor();
      const [map, first] = [
        await page.getByRole("region", { name: "Days and hours" }).boundingBox(),
        await cell.boundingBox(),
      ];
      const names = await page.locator("tbody th").first().boundingBox();
      // Late in the day the map cannot scroll far enough to show the present hour first; it is then scrolled to its end.
      const latest = await page
        .getByRole("region", { name: "Days and hours" })
        .evaluate((one) => one.scrollWidth - one.clientWidth - one.scrollLeft);
      const left = (first?.x ?? 0) - ((names?.x ?? 0) + (names?.width ?? 0));
      expect(Math.abs(left) < 12 || latest < 2).toBe(true);
      expect((first?.x ?? 0) < (map?.x ?? 0) + (map?.width ?? 0)).toBe(true);
    });
  });

  describe("the palette", () => {
    test("loses no key that is typed at once, and takes Enter for what was typed", async () => {
      const { page } = await house.visit({ as: "operator" });
      let release: () => void = () => undefined;
      const held = new Promise<void>((resolve) => {
        release = resolve;
      });
      let loads = 0;
      await page.route(/\/assets\/palette/, async (route) => {
        loads++;
        await held;
        await route.continue();
      });
      await page.goto(`${house.stage.url}/runs`);
      await heading(page, "Runs");
      await page.keyboard.press("Control+k");
      await page.keyboard.type("go send-invoicesx");
      await page.keyboard.press("Backspace");
      for (const _ of "go send-invoices") await page.keyboard.press("Backspace");
      await page.keyboard.type("send-inv");
      await page.keyboard.press("Enter");
      await heading(page, "Runs");
      release();
      await heading(page, "send-invoices");
      expect(loads).toBeGreaterThan(0);
      await unrouted(page);
      // While the field is empty, Enter opens no entry.
      await page.keyboard.press("Control+k");
      await page.keyboard.press("Enter");
      await page.getByRole("combobox", { name: "Go to" }).waitFor();
      await page.keyboard.press("Enter");
      await heading(page, "send-invoices");
      await page.keyboard.press("ArrowDown");
      await page.keyboard.press("Enter");
      await heading(page, "Overview");
    });
  });
}
