/** Takes the pictures of README and docs: `npm run build`, then `node scripts/servers.mjs node console/pictures.mjs`. */
import { fileURLToPath } from "node:url";
import { chromium } from "../scripts/servers/chromium.mjs";
import { obtain } from "../scripts/servers.mjs";
import { openBrowser } from "./test/support/browser.mjs";
import { openStage } from "./test/support/stage.mjs";

const store = process.env.CARILLON_TEST_POSTGRES_URL;
if (!store) throw new Error("run it as `node scripts/servers.mjs node console/pictures.mjs`");

Object.assign(process.env, obtain(chromium).env);

/**
 * The screenshots: `path` is opened in the colour scheme `scheme` and saved as `file` once the text `shows` is on the page.
 * @type {[file: string, scheme: "light" | "dark", path: string, shows: string][]}
 */
const pictures = [
  ["console.png", "light", "/", "Fires next"],
  ["console-tasks.png", "light", "/tasks", "sync-inventory"],
  ["console-task.png", "dark", "/tasks/sync-inventory", "Durations and lateness"],
];
const stage = await openStage({ store, hostile: false });
const browser = await openBrowser();
try {
  await stage.live();
  // Tasks run for 45 s before the first screenshot, so that the charts contain data.
  await new Promise((resolve) => setTimeout(resolve, 45_000));
  for (const [file, scheme, path, shows] of pictures) {
    const page = await browser.newPage({ viewport: { width: 1_280, height: 800 }, colorScheme: scheme });
    const data = { name: "admin", password: stage.adminPassword };
    await page.request.post(`${stage.url}/v1/sign-in`, { headers: { origin: stage.url }, data });
    await page.goto(`${stage.url}${path}`);
    await page.getByText(shows).first().waitFor();
    await page.waitForTimeout(2_000);
    await page.screenshot({ path: fileURLToPath(new URL(`../docs/${file}`, import.meta.url)) });
    await page.close();
  }
} finally {
  await browser.close();
  await stage.tower.stop();
}
