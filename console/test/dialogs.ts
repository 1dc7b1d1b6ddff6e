import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { type Message, type Words, wordsIn } from "../src/messages/texts.ts";
import { ask, type House, heading, type Look, overhang, settled, violations } from "./support/house.ts";

type Way = [opens: Message, vars?: Record<string, string>];

const looks = [
  { width: 1_440, preferences: { language: "en", scheme: "light" } },
  { width: 390, height: 844, preferences: { language: "zh", scheme: "dark" } },
] as const satisfies Look[];

/** Presses the button, the entry of a menu, or the summary with this text. */
async function press(page: Page, { t }: Words, [message, vars]: Way): Promise<void> {
  const name = t(message, vars);
  const act = page.getByRole("button", { name, exact: true }).or(page.getByRole("menuitem", { name, exact: true }));
  const all = page.locator("#content summary");
  // On a phone the acts on all that match are folded.
  await act.or(all).first().waitFor();
  if ((await all.count()) > 0 && !(await act.first().isVisible())) await all.first().click();
  await act.first().click();
}

/** Tests for console.test.ts: each dialog and popover that the screens open, in both themes, in both languages and on a phone. */
export function everyDialog(house: House): void {
  describe.each(looks)("every dialog in %j", ({ width, ...look }) => {
    test("passes axe and fits the window", async () => {
      const admin = { width, ...look };
      const visit = await house.visit(admin);
      const { page, go, complaints } = visit;
      const words = wordsIn(look.preferences.language, "Europe/Berlin");
      const { t } = words;
      const { runId } = await house.stage.tower.enqueue("import-feed", { lines: 1 }, { in: "7h" });
      const { groups } = (await ask(house, visit, "GET", "/dead-letters/groups")) as {
        groups: { fingerprint: string; lastRun: number }[];
      };
      const [group] = groups;
      if (!group) throw new Error("runs of sync-inventory have failed");
      const letter = group.lastRun;
      const letters = `/dead-letters?fingerprint=${group.fingerprint}`;
      const task = "/tasks/settle-accounts";
      const dialogs: [path: string, ...ways: Way[]][] = [
        ["/tasks", ["create.open"]],
        ["/tasks", ["tasks.pauseAll"]],
        ["/tasks", ["views.title"]],
        [task, ["task.runNow"]],
        [task, ["task.pause"]],
        [task, ["task.edit"]],
        [task, ["act.more"], ["backfill.open"]],
        [task, ["act.more"], ["create.copy"]],
        [task, ["act.more"], ["task.remove"]],
        ["/tasks/refund", ["task.runNow"]],
        [`/runs/${house.runs.logRun}`, ["run.rerun"]],
        [`/runs/${letter}`, ["run.rerun"]],
        [`/runs/${runId}`, ["run.cancel"]],
        ["/runs", ["runs.rerunAll"]],
        ["/runs", ["runs.cancelAll"]],
        ["/runs", ["views.title"]],
        [letters, ["dead.redriveOne", { run: String(letter) }]],
        [letters, ["dead.dismissOne", { run: String(letter) }]],
        ["/alarms", ["alarms.silenceAny"]],
        ["/alarms", ["rules.new"]],
        ["/workers", ["workers.drainOf", { node: "atlas" }]],
        ["/workers", ["workers.changeOf", { group: "default" }]],
        ["/calendars", ["calendar.new"]],
        ["/access", ["access.newUser"]],
        ["/access", ["access.changeOf", { what: "viewer" }]],
        ...(["access.setPassword", "access.signIns", "access.disable"] as const).map((act): [string, ...Way[]] => [
          "/access",
          ["access.moreOf", { what: "viewer" }],
          [act],
        ]),
        ["/access?part=tokens", ["access.newToken"]],
        ["/access?part=keys", ["access.newKey"]],
        ["/access?part=secrets", ["access.newSecret"]],
        ["/access?part=quotas", ["quotas.new"]],
      ];
      const dialog = page.getByRole("dialog");
      const looked = async (name: string) => {
        await dialog.first().waitFor();
        // Waits for the end of the transition, because axe would otherwise judge half-transparent colours.
        await settled(page);
        await expect.poll(() => dialog.first().evaluate((one) => one.getAnimations({ subtree: true }).length)).toBe(0);
        expect([name, await violations(page, "[role=dialog]")]).toEqual([name, []]);
        expect([name, await overhang(page)]).toEqual([name, 0]);
        await page.keyboard.press("Escape");
        await dialog.first().waitFor({ state: "detached" });
      };
      for (const [path, ...ways] of dialogs) {
        await go(path);
        for (const way of ways) await press(page, words, way);
        await looked(`${path} ${ways.map(([message]) => message).join(" ")}`);
      }
      await go("/workers");
      await heading(page, t("screen.workers"));
      await page.keyboard.press("?");
      await looked("keys");
      await page.keyboard.press("Control+k");
      await page.getByRole("combobox", { name: t("palette.title") }).fill(String(runId));
      await page.getByRole("option", { name: t("palette.cancel", { run: String(runId) }) }).waitFor();
      await looked("palette");
      expect(complaints).toEqual([]);
      await house.stage.tower.cancel(runId);
    });
  });
}
