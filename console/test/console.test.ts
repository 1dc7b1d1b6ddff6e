/**
 * All browser tests of the console, in one file because they share one server, one store and one browser; two files would each need their
 * own. Axe checks every screen and every dialog in several combinations of size, scheme and language.
 */
import { describe, expect, test } from "vitest";
import { postgres } from "../../scheduler/test/support/servers.ts";
import { actsOfThePalette } from "./acting-by-keys.ts";
import { completionsAndUndo } from "./acts.ts";
import { waysOfAlarmRules } from "./alarm-rules.ts";
import { everyDialog } from "./dialogs.ts";
import { servingAndSignIn } from "./entering.ts";
import { waysInFewSteps } from "./few-steps.ts";
import { firstSteps } from "./first-steps.ts";
import { waysOfFlow } from "./flow.ts";
import { formsAmongOthers } from "./forms.ts";
import { calendarsAndAccess } from "./keeping.ts";
import { deadLettersAndAudit } from "./letters.ts";
import { makingAndEditing } from "./making.ts";
import { waysOfAnOperator } from "./operating.ts";
import { storeAway } from "./outage.ts";
import { whatIsRead } from "./reading.ts";
import { roundsOfRequests } from "./rounds.ts";
import { secondFactors } from "./second-factor.ts";
import { whatIsShared } from "./sharing.ts";
import { whatStays } from "./staying.ts";
import { steadyLists } from "./steady.ts";
import { belowAPath } from "./subpath.ts";
import { heading, type Look, openHouse, overhang, violations } from "./support/house.ts";
import { hostileName, openStage } from "./support/stage.mjs";
import { runsThatWait } from "./waiting.ts";
import { wallboard } from "./wallboard.ts";

const house = openHouse();

servingAndSignIn(house);
secondFactors(house);
roundsOfRequests(house);

/** The path of each screen, and a text (regular expression) that appears once the screen is loaded. */
const screens = (): [path: string, shows: string][] => [
  ["/", "unacknowledged alarm|个未确认的告警"],
  ["/tasks", "nightly-report"],
  ["/tasks/nightly-report", "Europe/Berlin"],
  ["/tasks/sync-inventory?part=runs", "succeeded|成功"],
  ["/tasks/sync-inventory?part=statistics", "Success|成功率|No figures|暂无统计"],
  ["/tasks/sync-inventory?part=versions", "admin|atlas|code"],
  ["/runs", "heartbeat"],
  [`/runs/${house.runs.logRun}`, "part 3 of 120"],
  ["/dead-letters", "warehouse"],
  ["/flow", "No task comes after another|没有任务在其他任务之后运行"],
  [`/runs/${house.runs.logRun}/compare?with=${house.runs.longRun}`, "part 3 of 120|part 1600 of"],
  ["/timeline", "always: 30|始终：30"],
  ["/timeline?days=1&view=numbers&matching=sync", "sync-inventory"],
  ["/operations", "Run again|重新运行"],
  [`/operations/${house.operation}`, "mended"],
  ["/alarms", "connect ECONNREFUSED"],
  ["/workers", "rack=b4"],
  ["/nodes", "atlas"],
  ["/audit", "staff"],
  ["/calendars", "carillon calendars set"],
  ["/access", "operator|操作员"],
  ["/access?part=tokens", "ct_"],
  ["/access?part=keys", "carillon worker"],
  ["/access?part=secrets", "run.secret"],
  ["/access?part=hooks", "No hooks|没有入站 Webhook"],
  ["/access?part=quotas", "quotas|配额"],
  ["/access?part=sign-in", "the house"],
  ["/settings", "English"],
  ["/nowhere", "no such page|没有这个页面"],
];

describe.each([
  ["wide, light, in English", { width: 1_440, preferences: { language: "en", scheme: "light" } }],
  ["on a phone, dark, in Chinese", { width: 360, height: 740, preferences: { language: "zh", scheme: "dark" } }],
] satisfies [string, Look][])("every screen %s", (_, look) => {
  test("passes axe, fits the window, and violates no content security policy", async () => {
    const { context, page, complaints, go } = await house.visit(look);
    for (const [path, shows] of screens()) {
      await go(path);
      await page.locator("#content").getByText(new RegExp(shows)).first().waitFor();
      expect([path, await violations(page)]).toEqual([path, []]);
      expect([path, await overhang(page)]).toEqual([path, 0]);
    }
    const menu = page.getByRole("button", { name: /^(?:Menu|菜单)$/ });
    expect(await menu.isVisible(), "only a narrow screen has a menu").toBe(look.width < 860);
    if (await menu.isVisible()) {
      await menu.click();
      await page
        .getByRole("dialog")
        .getByRole("link", { name: /Runs|运行/ })
        .waitFor();
      expect(await violations(page)).toEqual([]);
      await page
        .getByRole("dialog")
        .getByRole("link", { name: /Runs|运行/ })
        .click();
      await heading(page, /Runs|运行/);
    }
    expect(complaints).toEqual([]);
    await context.close();
  });
});

waysOfAnOperator(house);
waysOfAlarmRules(house);
deadLettersAndAudit(house);
calendarsAndAccess(house);
completionsAndUndo(house);
formsAmongOthers(house);
whatStays(house);
steadyLists(house);
makingAndEditing(house);
storeAway(house);
whatIsRead(house);
runsThatWait(house);
actsOfThePalette(house);
firstSteps(house);
wallboard(house);
whatIsShared(house);
waysOfFlow(house);
belowAPath(house);
waysInFewSteps(house);
everyDialog(house);

describe("hostile text", () => {
  test("is shown as text on every page", async () => {
    const { page, complaints, go } = await house.visit();
    const task = encodeURIComponent(hostileName);
    const places: [path: string, shows: boolean][] = [
      ["/", true],
      ["/tasks", false],
      [`/tasks/${task}`, true],
      [`/runs/${house.runs.hostileRun}`, true],
      ["/runs?state=failed", true],
      [`/dead-letters?task=${task}`, true],
      [`/audit?about=task&named=${task}`, false],
    ];
    for (const [path, shows] of places) {
      await go(path);
      await page.getByText(hostileName).first().waitFor();
      if (shows) await page.getByText("window.hacked=1").first().waitFor();
      const found = await page.evaluate(() => ({
        hacked: "hacked" in globalThis,
        made: document.querySelectorAll('#content script, #content img, #content a[href^="javascript:"]').length,
      }));
      expect([path, found]).toEqual([path, { hacked: false, made: 0 }]);
    }
    expect(complaints).toEqual([]);
  });
});

describe("the connection to the server", () => {
  test("is shown as disconnected while the server is away, and recovers by itself", async () => {
    const first = await openStage({ store: postgres().url, bare: true });
    const { context, page, go } = await house.visit({ at: first });
    await go("/nodes");
    await page.locator('[data-state="live"]').waitFor();
    await page.getByText("term").first().waitFor();
    await first.tower.stop();
    await page.getByText(/^Disconnected\. What you see was last confirmed/).waitFor();
    await page.getByText("atlas").first().waitFor();
    // A screen whose code is not loaded yet shows an error in its place, and appears when the server answers again.
    await page.getByRole("link", { name: "Workers", exact: true }).first().click();
    await page.locator("#content").getByText("The server does not answer.").first().waitFor();
    const second = await openStage({
      store: postgres().url,
      bare: true,
      schema: first.schema,
      name: "boreas",
      listen: new URL(first.url).host,
    });
    await page.locator('[data-state="live"]').waitFor();
    await page.getByText(/^Disconnected/).waitFor({ state: "detached" });
    await page.getByText("boreas").first().waitFor();
    await context.close();
    await second.tower.stop();
  });
});
