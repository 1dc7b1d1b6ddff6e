import { describe, expect, test } from "vitest";
import { ask, type House, heading, type Visit, violations } from "./support/house.ts";
import { hostileName } from "./support/stage.mjs";

const actsOnRuns = /^(?:Run|Cancel|Mark|Dismiss|Compare|Copy) .*act$/s;

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

    describe("on a run", () => {
      const palette = ({ page }: Visit) => page.getByRole("combobox", { name: /^(?:Go to|跳转)$/ });
      const opened = async (visit: Visit, path: string, title: string | RegExp) => {
        await visit.go(path);
        await heading(visit.page, title);
        await visit.page.keyboard.press("Control+k");
        await palette(visit).waitFor();
      };
      const offered = async ({ page }: Visit) => {
        const texts = await page.getByRole("option", { name: actsOnRuns }).allInnerTexts();
        return texts.map((text) => text.split("\n")[0]);
      };
      const ended = async (visit: Visit, task: string, payload: unknown) => {
        const { runId } = await house.stage.tower.enqueue(task, payload);
        const state = async () => ((await ask(house, visit, "GET", `/runs/${runId}`)) as { state: string }).state;
        await expect.poll(state).toMatch(/succeeded|failed/);
        return runId;
      };

      test("run it again with another payload, compare it and copy it, by keys alone", async () => {
        const visit = await house.visit({ as: "operator" });
        const { page, context } = visit;
        await context.grantPermissions(["clipboard-read", "clipboard-write"]);
        const run = await ended(visit, "import-feed", { lines: 1 });
        await opened(visit, `/runs/${run}`, `Run ${run}`);
        await expect
          .poll(() => offered(visit))
          .toEqual([
            `Run ${run} again…`,
            `Run ${run} again with another payload…`,
            `Compare run ${run} with the previous success`,
            `Copy run ${run} as curl`,
          ]);
        expect(await violations(page)).toEqual([]);
        await page.keyboard.type("another");
        await page.keyboard.press("Enter");
        await page.getByRole("dialog").getByLabel("Payload", { exact: true }).and(page.locator(":focus")).waitFor();
        await page.keyboard.press("Control+a");
        await page.keyboard.type('{ "lines": 2 }');
        await page.keyboard.press("Tab");
        // The focus is now in the field for the reason.
        await page.keyboard.press("Control+Enter");
        await page.getByText("part 1 of 2").waitFor();
        const second = Number(new URL(page.url()).pathname.split("/").at(-1));
        expect(second > run).toBe(true);

        await page.keyboard.press("Control+k");
        await page.keyboard.type(`compare ${run}`);
        await page.keyboard.press("Enter");
        await heading(page, `Run ${second} compared with ${run}`);
        await page.keyboard.press("Control+k");
        await page.keyboard.type("curl");
        await page.keyboard.press("Enter");
        await page.getByRole("status").getByText("Copied").waitFor();
        const command = await page.evaluate(() => navigator.clipboard.readText());
        expect(command).toContain(`/v1/runs/${second}'`);
      });

      test("cancel the run whose number is typed, wherever the user is", async () => {
        const visit = await house.visit({ as: "operator" });
        const { page } = visit;
        const { runId } = await house.stage.tower.enqueue("import-feed", { lines: 1 }, { in: "5h" });
        await opened(visit, "/workers", "Workers");
        await page.keyboard.type(`cancel ${runId}`);
        await page.getByRole("option", { name: `Cancel run ${runId}…` }).waitFor();
        expect(await offered(visit)).toEqual([`Cancel run ${runId}…`]);
        await page.keyboard.press("Enter");
        await page.getByText(`Cancel run ${runId}?`).waitFor();
        await page.keyboard.press("Control+Enter");
        await page.getByText(`Run ${runId} is cancelled`).waitFor();
        expect(await ask(house, visit, "GET", `/runs/${runId}`)).toMatchObject({ state: "cancelled" });
        // The text names the page of the run, so that entry comes first.
        await page.keyboard.press("Control+k");
        await page.keyboard.type(`run ${runId}`);
        await page.keyboard.press("Enter");
        await heading(page, `Run ${runId}`);
      });

      test("run a dead letter again or dismiss it, and only look for a viewer", async () => {
        const visit = await house.visit({ as: "operator" });
        const { page } = visit;
        const run = await ended(visit, hostileName, null);
        await opened(visit, `/runs/${run}`, `Run ${run}`);
        const looks = [`Compare run ${run} with the previous success`, `Copy run ${run} as curl`];
        await expect
          .poll(() => offered(visit))
          .toEqual([
            `Run dead letter ${run} again…`,
            `Run ${run} again with another payload…`,
            `Dismiss dead letter ${run}…`,
            ...looks,
          ]);
        await page.keyboard.type("replay");
        await page.keyboard.press("Enter");
        await page.getByText(`Run ${run} again?`).waitFor();
        await page.keyboard.press("Escape");
        await page.getByRole("dialog").waitFor({ state: "detached" });
        await page.keyboard.press("Control+k");
        await page.keyboard.type("dismiss");
        await page.keyboard.press("Enter");
        await page.getByRole("dialog").getByText(`run ${run} of ${hostileName}`).waitFor();
        expect(await violations(page)).toEqual([]);
        await page.keyboard.press("Control+Enter");
        await page.getByText("done · 1 of 1").waitFor();
        await page.keyboard.press("Escape");
        await page.getByText("dismissed", { exact: true }).first().waitFor();

        const viewer = await house.visit({ as: "viewer" });
        await opened(viewer, `/runs/${run}`, `Run ${run}`);
        await expect.poll(() => offered(viewer)).toEqual(looks);
        await viewer.page.keyboard.press("Escape");
      });

      test("are there in Chinese", async () => {
        const visit = await house.visit({ as: "operator", preferences: { language: "zh", scheme: "dark" } });
        const run = house.runs.logRun;
        await opened(visit, `/runs/${run}`, `运行 ${run}`);
        await visit.page.keyboard.type("复制");
        await visit.page.getByRole("option", { name: `将运行 ${run} 复制为命令` }).waitFor();
        await palette(visit).fill("修改载荷");
        await visit.page.keyboard.press("Enter");
        await visit.page.getByRole("dialog").getByText(`重新运行 ${run}？`).waitFor();
        expect(await violations(visit.page)).toEqual([]);
        await visit.page.keyboard.press("Escape");
      });
    });
  });
}
