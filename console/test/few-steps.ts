import { cron } from "carillon";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { postgres } from "../../scheduler/test/support/servers.ts";
import { type House, heading, type Stage } from "./support/house.ts";
import { openStage } from "./support/stage.mjs";
import { countSteps } from "./support/steps.ts";

type Tower = Stage["tower"];

/** A report that fails for a payload without a price, and the tasks of a group. */
function furnish(tower: Tower): void {
  tower.task("nightly-report", {}, async (run, payload) => {
    const { price } = payload as { price?: number };
    run.log.info(`price ${price ?? "missing"}`);
    if (price === undefined) throw new Error("row 3 has no price");
  });
  for (const name of ["send-invoices", "close-books"])
    tower.task(
      name,
      { group: "billing", schedule: cron("30 2 * * *", { zone: "Europe/Berlin" }) },
      async () => undefined,
    );
}

const phone = { width: 390, height: 844 };

/** Tests for console.test.ts: common purposes of users, each begun on the overview and reached within a limited number of steps. */
export function waysInFewSteps(house: House): void {
  describe("from the overview", () => {
    let stage: Stage;
    const failed: number[] = [];
    beforeAll(async () => {
      stage = await openStage({ store: postgres().url, bare: true, tasks: furnish });
      await stage.people(stage.adminPassword);
      const visit = await house.visit({ at: stage });
      for (const payload of [{ price: 3 }, { batch: 7 }]) {
        const { runId } = await stage.tower.enqueue("nightly-report", payload, { labels: { shop: "eu-4" } });
        const isOver = async () => expect((await read(visit, `/runs/${runId}`)).state).toMatch(/succeeded|failed/);
        await vi.waitFor(isOver, { timeout: 60_000 });
        if (!("price" in payload)) failed.push(runId);
      }
    });
    afterAll(async () => {
      await stage.tower.stop();
    });
    const read = async ({ page }: { page: Page }, path: string) => {
      const answer = await page.context().request.get(`${stage.url}/v1${path}`);
      return (await answer.json()) as Record<string, unknown>;
    };
    /** Begins on the overview, and fails if `act` takes more than `most` steps. */
    const takes = async (most: number, act: (page: Page) => Promise<void>, look: object = {}) => {
      const { page, go } = await house.visit({ at: stage, ...look });
      await go("/");
      await heading(page, look === phone ? /./ : "Overview");
      const steps = await countSteps(page);
      await act(page);
      const taken = await steps.taken();
      expect(taken.length, taken.join(" · ")).toBeGreaterThan(0);
      expect(taken.length, taken.join(" · ")).toBeLessThanOrEqual(most);
    };
    const screen = (page: Page, name: string) => page.getByRole("link", { name, exact: true }).first().click();

    test("one sees in 3 steps why last night failed", async () => {
      await takes(3, async (page) => {
        const reason = page.getByRole("listitem").filter({ hasText: "row # has no price" });
        await reason.getByRole("link", { name: "Compare with the previous success" }).click();
        await heading(page, /^Run \d+ compared with \d+$/);
        await page.getByRole("region", { name: "Error" }).getByText("row 3 has no price").waitFor();
        await page.getByRole("region", { name: "Payload" }).getByText("price").first().waitFor();
      });
    });

    test("one runs again in 4 steps what failed, with another payload", async () => {
      await takes(4, async (page) => {
        const failing = page.locator("section", { has: page.getByRole("heading", { name: "Failing" }) });
        await failing.getByRole("link", { name: String(failed[0]), exact: true }).click();
        await page.getByRole("button", { name: "Run again" }).click();
        const dialog = page.getByRole("dialog");
        await dialog.getByLabel("Payload", { exact: true }).fill('{ "price": 5 }');
        await dialog.getByRole("button", { name: "Run again" }).click();
        await page.getByText("price 5").waitFor();
      });
    });

    test("one creates a task in 6 steps", async () => {
      await takes(6, async (page) => {
        await screen(page, "Tasks");
        await page.getByRole("button", { name: "New task" }).click();
        const dialog = page.getByRole("dialog");
        await dialog.getByRole("textbox", { name: "Name" }).fill("ping-shop");
        await dialog.getByRole("textbox", { name: "URL" }).fill("https://shop.example/ping");
        await dialog.getByLabel("Cron, or words").fill("weekdays at 9:30");
        await dialog.getByRole("button", { name: "Create" }).click();
        await heading(page, "ping-shop");
      });
    });

    test("one pauses a group until 18:00 in 5 steps", async () => {
      await takes(5, async (page) => {
        await page.keyboard.press("Control+k");
        const field = page.getByRole("combobox", { name: "Go to" });
        await field.fill("pause group bill");
        await page.getByRole("option", { name: "Pause the tasks of group billing…" }).waitFor();
        await field.press("Enter");
        const dialog = page.getByRole("dialog");
        await dialog.getByText("Pause 2 tasks?").waitFor();
        await dialog.getByRole("button", { name: "next 18:00" }).click();
        await dialog.getByRole("button", { name: "Pause", exact: true }).click();
        await dialog.getByText("done · 2 of 2").waitFor();
      });
      const visit = await house.visit({ at: stage });
      const { paused } = await read(visit, "/tasks/send-invoices");
      const { until } = paused as { until: string };
      expect(new Date(until).toLocaleTimeString("en-GB", { timeZone: "Europe/Berlin" })).toBe("18:00:00");
      await visit.page.getByRole("dialog").getByRole("button", { name: "Close" }).last().click();
    });

    test("one edits a cron in 5 steps, with its next 20 slots and the changes of the clocks", async () => {
      await takes(5, async (page) => {
        await screen(page, "Tasks");
        await page.getByRole("link", { name: "close-books", exact: true }).click();
        await page.getByRole("button", { name: "Edit", exact: true }).click();
        const dialog = page.getByRole("dialog");
        await dialog.getByLabel("Cron, or words").fill("every day at 2:15");
        await dialog.getByRole("status").getByText(/02:15/).waitFor();
        expect(await dialog.getByRole("list", { name: "Next 20 slots" }).getByRole("listitem").count()).toBe(20);
        const turns = dialog.getByText(/clocks go 60 min (?:forward|back)/);
        await turns.first().waitFor();
        await dialog.getByRole("button", { name: "Save as a new version" }).click();
        await page.locator("[data-head]").getByText(/02:15/).waitFor();
      });
    });

    test("one drains a worker in 3 steps", async () => {
      await takes(3, async (page) => {
        await screen(page, "Workers");
        await page.getByRole("button", { name: "Drain atlas" }).first().click();
        await page.getByRole("dialog").getByRole("button", { name: "Drain" }).click();
        await page.getByText("atlas takes no more runs").waitFor();
      });
    });

    test("one grants a role in 5 steps", async () => {
      await takes(5, async (page) => {
        await screen(page, "Access");
        await page.getByRole("button", { name: "Change viewer" }).click();
        const dialog = page.getByRole("dialog");
        await dialog.getByRole("combobox", { name: "Role everywhere" }).click();
        await page.getByRole("option", { name: "operator" }).click();
        await dialog.getByRole("button", { name: "Change", exact: true }).click();
        await dialog.waitFor({ state: "detached" });
      });
      const visit = await house.visit({ at: stage });
      expect(await read(visit, "/users/viewer")).toMatchObject({ role: "operator" });
    });

    test("one finds a run on a phone by its number in 3 steps, and by its labels in 4", async () => {
      const run = failed[0] as number;
      await takes(
        3,
        async (page) => {
          await page
            .locator("header")
            .getByRole("button", { name: /^Search/ })
            .click();
          await page.getByRole("combobox", { name: "Go to" }).fill(String(run));
          await page
            .getByRole("option", { name: `Run ${run}` })
            .first()
            .click();
          await heading(page, `Run ${run}`);
        },
        phone,
      );
      await takes(
        4,
        async (page) => {
          await page.getByRole("button", { name: "Menu" }).click();
          await page.getByRole("dialog").getByRole("link", { name: "Runs" }).click();
          await page.getByLabel("Labels of the run").fill("shop=eu-4");
          await page.waitForURL(/label=/);
          await page.getByRole("link", { name: String(run), exact: true }).click();
          await heading(page, `Run ${run}`);
        },
        phone,
      );
    });
  });
}
