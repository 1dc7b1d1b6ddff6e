import { describe, expect, test } from "vitest";
import { ask, type House, heading, overhang, violations } from "./support/house.ts";

/** Tests for console.test.ts: why runs have not started, on their pages, in lists, and on the page of the workers. */
export function runsThatWait(house: House): void {
  describe("a run that waits", () => {
    test("says why in one sentence, with the run and the screen that help", async () => {
      const admin = await house.visit();
      const options = { group: "quay", overlap: "queue", command: { argv: ["/bin/true"] } };
      await ask(house, admin, "PUT", "/tasks/unload", { options });
      const { tower } = house.stage;
      const [first, second, later] = [
        (await tower.enqueue("unload", null)).runId,
        (await tower.enqueue("unload", null)).runId,
        (await tower.enqueue("import-feed", { lines: 1 }, { in: "9h" })).runId,
      ];
      const { page, go } = await house.visit({ as: "operator" });
      const why = page.getByRole("region", { name: "Why it has not started" });
      await go(`/runs/${second}`);
      await why.getByText("Its task has at most 1 run under way at once.").waitFor();
      await why.getByRole("link", { name: String(first), exact: true }).waitFor();
      expect(await violations(page)).toEqual([]);
      await why.getByRole("link", { name: String(first), exact: true }).click();
      await why.getByText("No worker serves its group quay.").waitFor();
      await why.getByRole("link", { name: "To the workers" }).click();
      await page.waitForURL(/\/workers\?group=quay/);
      const quay = page.locator("section", { has: page.getByRole("heading", { name: "quay", exact: true }) });
      await quay.getByText("no worker", { exact: true }).waitFor();
      await quay.getByText("No worker serves its group quay.").waitFor();
      await quay.getByRole("link", { name: String(first), exact: true }).waitFor();
      expect(await violations(page)).toEqual([]);

      await go(`/runs/${later}`);
      await why.getByText(/^It is due in 9 h\./).waitFor();
      await go("/runs?task=unload");
      const row = (run: number) => page.getByRole("row", { name: new RegExp(` ${run} `) });
      await row(first).getByText("No worker serves its group quay.").waitFor();
      await row(second).getByText("Its task has at most 1 run under way at once.").waitFor();
      expect(await violations(page)).toEqual([]);

      // The page updates itself: after the pause of the task that is the reason, and a run that has ended has no reason.
      await tower.pause("unload");
      await go(`/runs/${first}`);
      await why.getByText("Its task is paused.").waitFor();
      await why.getByRole("link", { name: "To the task" }).click();
      await heading(page, "unload");
      const chinese = await house.visit({ as: "operator", width: 390, height: 844, preferences: { language: "zh" } });
      await chinese.go("/runs?task=unload");
      await chinese.page.locator("#content").getByText("其任务已暂停。").first().waitFor();
      expect(await overhang(chinese.page)).toBe(0);
      for (const run of [first, second, later]) await tower.cancel(run);
      await go(`/runs/${first}`);
      await page.locator('[data-state="cancelled"]').first().waitFor();
      expect(await why.count()).toBe(0);
      await ask(house, admin, "DELETE", "/tasks/unload");
    });
  });

  describe("the page of the workers", () => {
    test("asks once for the reasons of all groups, not once for each", async () => {
      const admin = await house.visit();
      const { tower } = house.stage;
      const groups = ["pier", "slip"];
      const runs: number[] = [];
      for (const group of groups) {
        const options = { group, command: { argv: ["/bin/true"] } };
        await ask(house, admin, "PUT", `/tasks/load-${group}`, { options });
        runs.push((await tower.enqueue(`load-${group}`, null)).runId);
      }
      const { page, go } = await house.visit({ as: "operator" });
      const asked: string[] = [];
      const note = (request: { url: () => string }) => void asked.push(request.url());
      page.on("request", note);
      await go("/workers");
      for (const [at, name] of groups.entries()) {
        const group = page.locator("section", { has: page.getByRole("heading", { name, exact: true }) });
        await group.getByText(`No worker serves its group ${name}.`).waitFor();
        await group.getByRole("link", { name: String(runs[at]), exact: true }).waitFor();
      }
      const together = (url: string) => {
        const { pathname, searchParams } = new URL(url);
        return pathname === "/v1/run-reasons" && runs.every((run) => searchParams.getAll("run").includes(String(run)));
      };
      expect(asked.some(together)).toBe(true);
      expect(asked.filter((url) => /\/v1\/runs\/\d+\/reasons/.test(url))).toEqual([]);
      page.off("request", note);
      for (const run of runs) await tower.cancel(run);
      for (const group of groups) await ask(house, admin, "DELETE", `/tasks/load-${group}`);
    });

    test("has the room, the load and the workers of each group", async () => {
      const { page, go } = await house.visit({ as: "operator" });
      await go("/workers");
      const group = page.locator("section", { has: page.getByRole("heading", { name: "default", exact: true }) });
      await group.getByText("of 40 places").first().waitFor();
      await group.getByRole("heading", { name: "atlas" }).waitFor();
      await group.getByRole("progressbar", { name: "Load of default" }).waitFor();
      await group.getByText("due, not started").waitFor();
      await group.getByRole("link", { name: "See them" }).click();
      await page.waitForURL(/\/tasks\?group=default/);
    });
  });
}
