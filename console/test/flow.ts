import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { postgres } from "../../scheduler/test/support/servers.ts";
import { type House, heading, type Look, overhang, type Stage, violations } from "./support/house.ts";
import { openStage } from "./support/stage.mjs";

type Tower = Stage["tower"];

/** Tasks that come after others, one that makes children, and one that fails if its payload says so. */
function furnish(tower: Tower): void {
  tower.task("extract", {}, async () => undefined);
  tower.task("load", { after: "extract" }, async () => undefined);
  tower.task("audit", { after: "extract" }, async () => undefined);
  tower.task("report", { after: ["load", "audit"] }, async () => undefined);
  tower.task("page-someone", { after: { tasks: "load", on: "failure" } }, async () => undefined);
  tower.task("alone", {}, async () => undefined);
  tower.task("resize", {}, async () => undefined);
  tower.task("publish", {}, async () => undefined);
  tower.task("resize-all", {}, async (run, payload) => {
    const { files } = payload as { files: number };
    const children = Array.from({ length: files }, (_, at) => ({ task: "resize", payload: null, key: `f${at}` }));
    return run.fanOut(children, { join: "publish" });
  });
  tower.task("import", { retry: 1 }, async (run, payload) => {
    const { rows, fails = false } = payload as { rows: number; fails?: boolean };
    run.log.info(`reading ${rows} rows`);
    if (fails) {
      run.log.error("row 3 has no price");
      throw new Error("row 3 has no price");
    }
    run.log.info("all rows are stored");
    return { stored: rows };
  });
}

const looks = [
  { width: 1_440, preferences: { language: "en", scheme: "light" } },
  { width: 390, height: 844, preferences: { language: "zh", scheme: "dark" } },
] satisfies Look[];

const graph = (page: Page) =>
  page.getByRole("group", { name: /what they come after|connected runs|先后关系|相关的运行/ });
const node = (page: Page, name: string) => graph(page).locator(`[data-node="${name}"]`);
const focused = (page: Page) =>
  page.evaluate(() => (document.activeElement as HTMLElement | null)?.dataset.node ?? null);
const chosen = (page: Page) => page.getByRole("region", { name: "The chosen node" });

/** Tests for console.test.ts: the graphs of tasks and of runs, and the comparison of two runs. */
export function waysOfFlow(house: House): void {
  describe("what is connected", () => {
    let stage: Stage;
    beforeAll(async () => {
      stage = await openStage({ store: postgres().url, bare: true, tasks: furnish });
      await stage.people(stage.adminPassword);
    });
    afterAll(async () => {
      await stage.tower.stop();
    });
    const visit = (look: Look = {}) => house.visit({ at: stage, ...look });
    const ended = async (run: number) => {
      const { context } = await visit({ as: "operator" });
      const state = async () => {
        const answer = await context.request.get(`${stage.url}/v1/runs/${run}`);
        return ((await answer.json()) as { state: string }).state;
      };
      await expect.poll(state).toMatch(/succeeded|failed/);
      return run;
    };
    const enqueued = async (task: string, payload: object) => ended((await stage.tower.enqueue(task, payload)).runId);

    describe("the graph of tasks", () => {
      test("is walked by arrow keys, opened by Enter, and has the actions of the node that is chosen", async () => {
        const { page, go } = await visit({ as: "operator" });
        await go("/tasks/load?part=flow");
        await node(page, "load").waitFor();
        expect(await graph(page).locator("[data-node]").count()).toBe(5);
        expect(await graph(page).locator('[data-node][tabindex="0"]').count()).toBe(1);
        await graph(page).getByText("on failure", { exact: true }).waitFor();
        await node(page, "load").focus();
        await page.keyboard.press("ArrowLeft");
        expect(await focused(page)).toBe("extract");
        await chosen(page).getByRole("button", { name: "Run now" }).waitFor();
        await page.keyboard.press("ArrowRight");
        await page.keyboard.press("ArrowRight");
        expect(await focused(page)).toMatch(/^(?:report|page-someone)$/);
        await page.keyboard.press("ArrowLeft");
        await page.keyboard.press("ArrowLeft");
        expect(await focused(page)).toBe("extract");
        await page.keyboard.press("Enter");
        await heading(page, "extract");
      });

      test("shows at once what a task does, and lets it run from there", async () => {
        const { page, go } = await visit({ as: "operator" });
        await go("/flow");
        await heading(page, "Flow");
        await node(page, "extract").getByText("no runs yet").waitFor();
        // A click selects a node and opens nothing.
        await node(page, "extract").click();
        await heading(page, "Flow");
        await chosen(page).getByRole("link", { name: "extract" }).waitFor();
        await stage.tower.enqueue("extract", null);
        for (const name of ["extract", "load", "audit", "report"])
          await node(page, name).getByText("succeeded").waitFor();
        expect(await node(page, "page-someone").getByText("no runs yet").count()).toBe(1);
        await chosen(page).getByRole("button", { name: "Pause" }).click();
        await page.getByRole("dialog").getByRole("button", { name: "Pause", exact: true }).click();
        await node(page, "extract").getByText("paused").waitFor();
        await chosen(page).getByRole("button", { name: "Resume" }).click();
        await node(page, "extract").getByText("paused").waitFor({ state: "detached" });
      });

      test("is there as a list, has no actions for a viewer, and grows and shrinks", async () => {
        const { page, go } = await visit({ as: "viewer" });
        await go("/flow");
        await node(page, "load").click();
        await chosen(page).getByRole("link", { name: "load" }).waitFor();
        expect(await chosen(page).getByRole("button").count()).toBe(0);
        const width = async () => (await node(page, "load").boundingBox())?.width ?? 0;
        const before = await width();
        await page.getByRole("button", { name: "Larger" }).click();
        expect((await width()) > before).toBe(true);
        await page.getByRole("button", { name: "Show all" }).click();
        await node(page, "load").focus();
        await page.keyboard.press("-");
        expect((await width()) < before).toBe(true);
        await page.getByText("List", { exact: true }).click();
        await page.getByRole("row", { name: /page-someone.*load.*on failure/ }).waitFor();
        await page.getByRole("row", { name: /extract.*audit.*load/ }).waitFor();
        expect(await violations(page)).toEqual([]);
        await go("/tasks/alone?part=flow");
        await page.getByText("This task comes after no other").waitFor();
      });
    });

    describe("the family of a run", () => {
      test("has one node for many runs that are alike, which opens and folds, and the actions of each run", async () => {
        const run = await enqueued("resize-all", { files: 40 });
        const { page, go } = await visit({ as: "operator" });
        await go(`/runs/${run}`);
        await graph(page).getByText("40 ×").waitFor();
        await graph(page).getByText("publish").first().waitFor();
        await expect.poll(() => graph(page).locator("[data-node]").count()).toBe(3);
        expect(await graph(page).locator('[aria-current="page"]').getAttribute("data-node")).toBe(String(run));
        await node(page, String(run)).focus();
        await page.keyboard.press("ArrowRight");
        await page.keyboard.press("Enter");
        await expect.poll(() => graph(page).locator("[data-node]").count()).toBe(42);
        await expect
          .poll(() => focused(page), { message: "the focus goes on to a run of the opened node" })
          .toMatch(/^\d+$/);
        await page.getByRole("button", { name: "Fold runs that are alike" }).click();
        await expect.poll(() => graph(page).locator("[data-node]").count()).toBe(3);
        await node(page, String(run)).focus();
        await page.keyboard.press("ArrowRight");
        await page.keyboard.press("ArrowRight");
        const join = await focused(page);
        await chosen(page).getByRole("button", { name: "Run again" }).waitFor();
        await page.keyboard.press("Enter");
        await heading(page, `Run ${join}`);
        await graph(page).getByText("resize-all").first().waitFor();
      });

      test("is not there for a run without relatives", async () => {
        const run = await enqueued("import", { rows: 1 });
        const { page, go } = await visit({ as: "viewer" });
        await go(`/runs/${run}`);
        await page.getByRole("heading", { name: "Details" }).waitFor();
        expect(await page.getByRole("heading", { name: "Connected runs" }).count()).toBe(0);
      });
    });

    describe("two runs", () => {
      test("are compared from a run's page with the success before it, and the link can be shared", async () => {
        const good = await enqueued("import", { rows: 12 });
        const bad = await enqueued("import", { rows: 15, fails: true });
        await enqueued("import", { rows: 16 });
        const { page, go } = await visit({ as: "viewer" });
        await go(`/runs/${bad}`);
        await page.getByRole("link", { name: "Compare with the previous success" }).click();
        await heading(page, `Run ${bad} compared with ${good}`);
        expect(new URL(page.url()).search).toBe(`?with=${good}`);
        const address = page.url();
        await page.goto("about:blank");
        await page.goto(address);
        const facts = page.getByRole("region", { name: "Side by side" });
        await facts.getByRole("row", { name: /^State succeeded differs: failed/ }).waitFor();
        await facts.getByRole("row", { name: /^Version 1 1$/ }).waitFor();
        // The release of the worker: its label and a digest.
        await facts.getByRole("row", { name: /^Release \d[^ ]*\+/ }).waitFor();
        const payload = page.getByRole("region", { name: "Payload" });
        expect(await payload.locator("del").allInnerTexts()).toEqual([expect.stringContaining("12")]);
        expect(await payload.locator("ins").allInnerTexts()).toEqual([
          expect.stringContaining("15"),
          expect.stringContaining("true"),
        ]);
        await page.getByRole("region", { name: "Error" }).getByText("row 3 has no price").waitFor();
        const log = page.getByRole("region", { name: `Log ${bad}` });
        await log.locator("[data-alone]").filter({ hasText: "row 3 has no price" }).waitFor();
        await page.getByRole("switch", { name: "Only lines that the other log does not have" }).click();
        await expect.poll(() => log.getByText("reading").count()).toBe(0);
        expect(await log.getByText("row 3 has no price").count()).toBe(1);
        expect(await violations(page)).toEqual([]);
      });

      test("are compared from two selected rows, the older one first", async () => {
        const { page, go } = await visit({ as: "viewer" });
        const [older, newer] = [await enqueued("import", { rows: 20 }), await enqueued("import", { rows: 21 })];
        for (const path of ["/runs?task=import", "/tasks/import?part=runs"]) {
          await go(path);
          const compare = page.getByRole("button", { name: "Compare the two" });
          await page.getByRole("checkbox", { name: `Choose ${newer}`, exact: true }).check();
          expect(await compare.isDisabled()).toBe(true);
          await page.getByRole("checkbox", { name: `Choose ${older}`, exact: true }).check();
          await page.getByRole("link", { name: "Compare the two" }).click();
          await heading(page, `Run ${newer} compared with ${older}`);
        }
      });

      test("say so if no earlier run succeeded, or if there is no such run", async () => {
        const { page, go } = await visit({ as: "viewer" });
        const first = await ended((await stage.tower.enqueue("alone", null)).runId);
        await go(`/runs/${first}/compare`);
        await page.getByText("No earlier run of this task succeeded").waitFor();
        await page.getByRole("textbox", { name: "Number of the other run" }).fill("999999");
        await page.getByRole("button", { name: "Compare", exact: true }).click();
        await page.getByRole("alert").waitFor();
        await go(`/runs/${first}/compare?with=x`);
        await page.getByText("A run has a number.").waitFor();
      });
    });

    describe("errors", () => {
      test("are grouped by their reason, for a task and for all, with the way to the comparison", async () => {
        for (const rows of [31, 32]) await enqueued("import", { rows, fails: true });
        const { page, go } = await visit({ as: "viewer" });
        for (const path of ["/tasks/import", "/"]) {
          await go(path);
          const card = page.locator("section", { has: page.getByRole("heading", { name: "Errors by reason" }) });
          const group = card.getByRole("listitem").filter({ hasText: "row # has no price" });
          await group.getByText(/^\d+ ×$/).waitFor();
          await group
            .getByRole("img", { name: /0 failures in the first half of the time, \d+ in the second/ })
            .waitFor();
          await group.getByText(/^began with release /).waitFor();
          expect(await card.getByRole("listitem").count()).toBe(1);
          expect(await violations(page)).toEqual([]);
        }
        await page.getByRole("link", { name: "Compare with the previous success" }).click();
        await heading(page, /^Run \d+ compared with \d+$/);
        await go("/tasks/alone");
        await page.getByRole("heading", { name: "Durations and lateness" }).waitFor();
        expect(await page.getByRole("heading", { name: "Errors by reason" }).count()).toBe(0);
      });
    });

    test.each(looks)("on a screen %#: nothing that axe finds, and it fits", async (look) => {
      const { page, complaints, go } = await visit(look);
      const [good, bad] = [await enqueued("import", { rows: 1 }), await enqueued("import", { rows: 2, fails: true })];
      const parent = await enqueued("resize-all", { files: 3 });
      const { page: shown } = await visit(look);
      expect(shown).toBe(page);
      for (const path of [
        "/flow",
        "/tasks/load?part=flow",
        `/runs/${parent}`,
        `/runs/${bad}/compare?with=${good}`,
        "/tasks/import?part=runs",
        "/tasks/import",
        "/",
      ]) {
        await go(path);
        if (/flow|runs\/\d+$/.test(path)) await graph(page).locator("[data-node]").first().waitFor();
        const shows = path === "/" ? /^(?:Errors by reason|按原因分组的错误)$/ : /succeeded|成功/;
        await page.locator("#content").getByText(shows).first().waitFor();
        expect([path, await violations(page)]).toEqual([path, []]);
        expect([path, await overhang(page)]).toEqual([path, 0]);
      }
      expect(complaints).toEqual([]);
    });
  });
}
