import { carillon } from "carillon";
import { describe, expect, test } from "vitest";
import { postgres } from "../../scheduler/test/support/servers.ts";
import { type House, heading, overhang, violations } from "./support/house.ts";
import { openStage, silentLog } from "./support/stage.mjs";

/** Tests for console.test.ts: the guide on the overview of a new cluster. */
export function firstSteps(house: House): void {
  describe("the guide of a new cluster", () => {
    test("follows from a worker to a run that has ended, and is gone then", async () => {
      const store = postgres().url;
      const stage = await openStage({ store, bare: true, worker: false });
      const { context, page, complaints, go } = await house.visit({ at: stage, width: 1_024 });
      await go("/");
      const guide = page.locator("section", { hasText: "First steps" });
      const present = guide.locator('[aria-current="step"]');
      await present.getByRole("heading", { name: "Start a worker" }).waitFor();
      await guide.getByText("carillon worker --store postgres://… --allow-http api.example.com").waitFor();
      await guide.getByText("Code of a worker", { exact: true }).click();
      await guide.getByText(`carillon worker --server ${stage.url} tasks.ts`).waitFor();
      expect(await violations(page)).toEqual([]);
      expect(await overhang(page)).toBe(0);
      await guide.getByText("Command", { exact: true }).click();
      await guide.getByText("carillon worker --store postgres://… --allow echo").waitFor();

      // The task is created before the worker: the guide follows what the cluster has, not a fixed order.
      await guide.getByRole("button", { name: "New task" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByRole("textbox", { name: "Name" }).fill("hello");
      await dialog.getByLabel("Command line").fill("echo hello");
      await dialog.getByLabel("Cron, or words").fill("0 0 1 1 *");
      await dialog.getByRole("button", { name: "Create" }).click();
      await heading(page, "hello");
      await go("/");
      await present.getByRole("heading", { name: "Start a worker" }).waitFor();
      await guide.getByRole("link", { name: "hello" }).waitFor();

      const worker = carillon({
        store,
        schema: stage.schema,
        name: "beacon",
        scheduler: false,
        commands: { allow: ["echo"] },
        log: silentLog,
        handleSignals: false,
      });
      await worker.start();
      await present.getByRole("heading", { name: "Run it", exact: true }).waitFor();
      await guide.getByText("1 worker is running: beacon").waitFor();
      await guide.getByText("carillon tasks run hello --wait").waitFor();
      expect(await violations(page)).toEqual([]);
      await guide.getByRole("button", { name: "Run hello now" }).click();
      await dialog.getByRole("button", { name: "Run now" }).click();
      await heading(page, /^Run \d+$/);
      await page.locator('[data-state="succeeded"]').first().waitFor();
      await go("/");
      await heading(page, "Overview");
      await page.getByRole("img", { name: /^1 run;/ }).waitFor();
      expect(await guide.count()).toBe(0);
      expect(complaints).toEqual([]);
      await context.close();
      await worker.stop();
      await stage.tower.stop();
    });
  });
}
