/** The measurements in the console's pages, made in one browser. */
import type { Browser, Page } from "playwright-core";
import { type Figures, percentile } from "../measure/figures.ts";
import { needle } from "./fill.ts";
import { inPage } from "./in-page.ts";

export interface Place {
  url: string;
  /** The session cookie, as `name=value`. */
  cookie: string;
}

/** The time limit in ms of each wait for the page. */
const patienceMs = 60_000;
/** Event Timing reports only inputs that took at least this many ms; it rounds to 8 ms. */
const leastMs = 16;
const toldMs = 400;
const pixelsPerFrame = 300;

export async function open(browser: Browser, { url, cookie }: Place): Promise<Page> {
  const context = await browser.newContext({ viewport: { width: 1_440, height: 900 } });
  context.setDefaultTimeout(patienceMs);
  const [name = "", value = ""] = cookie.split("=");
  await context.addCookies([{ name, value, url }]);
  await context.addInitScript(inPage);
  return context.newPage();
}

const timeOf = (page: Page, call: string) => page.evaluate(`bench.${call}`) as Promise<number>;

/** Measures two visits: the first with an empty cache, the second with the scripts cached. */
export async function paint(browser: Browser, place: Place): Promise<Figures> {
  const page = await open(browser, place);
  const figures: Figures = {};
  for (const visit of ["", "_again"]) {
    await page.goto(place.url, { waitUntil: "commit" });
    figures[`overview_shown_ms${visit}`] = await timeOf(page, "overview()");
    figures[`overview_first_paint_ms${visit}`] = Number(
      await page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime"),
    );
    figures[`overview_largest_paint_ms${visit}`] = Number(await page.evaluate("bench.lcp"));
  }
  await page.context().close();
  return figures;
}

/**
 * Measures several actions of a user: the longest time from an input to the next frame, and the time until the action's result is visible.
 */
export async function interact(browser: Browser, place: Place, times: number): Promise<Figures> {
  const page = await open(browser, place);
  await page.goto(`${place.url}/tasks`);
  await page.getByRole("link", { name: "bench-00000" }).waitFor();
  await page.waitForTimeout(1_000);
  const figures: Figures = {};
  const worst: number[] = [];
  const measure = async (what: string, act: () => Promise<void>, undo: () => Promise<void>) => {
    const [took, shown]: [number[], number[]] = [[], []];
    for (let time = 0; time < times; time++) {
      await page.evaluate("bench.events.length = 0");
      const began = performance.now();
      await act();
      shown.push(performance.now() - began);
      await page.waitForTimeout(toldMs);
      took.push(Number(await page.evaluate(`Math.max(${leastMs}, ...bench.events)`)));
      await undo();
      await page.waitForTimeout(toldMs);
    }
    figures[`${what}_ms`] = percentile(
      took.toSorted((a, b) => a - b),
      0.5,
    );
    figures[`${what}_shown_ms`] = percentile(
      shown.toSorted((a, b) => a - b),
      0.5,
    );
    worst.push(...took);
  };
  const field = page.locator("[data-search]");
  const home = page.getByRole("link", { name: "bench-00000" });
  await measure(
    "open_task",
    async () => {
      await page.getByRole("link", { name: "bench-00003" }).click();
      await page.getByRole("heading", { level: 1, name: "bench-00003" }).waitFor();
    },
    async () => {
      await page.goBack();
      await home.waitFor();
    },
  );
  await measure(
    "search",
    async () => {
      await field.pressSequentially("00042", { delay: 60 });
      await home.waitFor({ state: "detached" });
      await page.getByRole("link", { name: "bench-00042" }).waitFor();
    },
    async () => {
      await field.fill("");
      await home.waitFor();
    },
  );
  await measure(
    "filter",
    async () => {
      await page.getByText("Paused", { exact: true }).click();
      await home.waitFor({ state: "detached" });
    },
    async () => {
      await page.getByText("All", { exact: true }).click();
      await home.waitFor();
    },
  );
  await measure(
    "palette",
    async () => {
      await page.keyboard.press("Control+k");
      await page.getByRole("combobox", { name: "Go to" }).pressSequentially("bench-00007", { delay: 40 });
      await page.getByRole("option", { name: /bench-00007/ }).waitFor();
    },
    async () => {
      await page.keyboard.press("Escape");
      await page.getByRole("option").first().waitFor({ state: "detached" });
    },
  );
  await measure(
    "choose_all",
    async () => void (await page.getByRole("checkbox").first().click()),
    async () => void (await page.getByRole("checkbox").first().click()),
  );
  figures.interaction_ms = Math.max(...worst);
  await page.context().close();
  return figures;
}

/** Measures the frame times while the list is scrolled from the first task to the last. */
export async function scroll(browser: Browser, place: Place, tasks: number): Promise<Figures> {
  const page = await open(browser, place);
  await page.goto(`${place.url}/tasks`);
  await page.getByRole("link", { name: "bench-00000" }).waitFor();
  await page.waitForTimeout(1_000);
  const frames = (await page.evaluate(`bench.scroll(${pixelsPerFrame}, ${tasks})`)) as number[];
  const last = `bench-${String(tasks - 1).padStart(5, "0")}`;
  await page.getByRole("link", { name: last }).waitFor();
  await page.context().close();
  frames.sort((a, b) => a - b);
  const total = frames.reduce((sum, frame) => sum + frame, 0);
  return {
    scroll_frames_per_s: (1_000 * frames.length) / total,
    scroll_frame_ms_p50: percentile(frames, 0.5),
    scroll_frame_ms_p95: percentile(frames, 0.95),
    scroll_frame_ms_max: percentile(frames, 1),
    scroll_s: total / 1_000,
  };
}

/** Measures, on a long log, the times until its first lines, its last lines and a search result far from both are visible. */
export async function readLog(browser: Browser, place: Place, run: number, lines: number): Promise<Figures> {
  const page = await open(browser, place);
  const figures: Figures = {};
  await page.goto(`${place.url}/settings`);
  await page.goto(`${place.url}/runs/${run}`, { waitUntil: "commit" });
  figures.log_first_ms = await timeOf(page, "says('part 2 of')");
  const since = async (act: () => Promise<void>, says: string) => {
    const began = performance.now();
    await act();
    await timeOf(page, `says(${JSON.stringify(says)})`);
    return performance.now() - began;
  };
  figures.log_end_ms = await since(
    () => page.getByRole("button", { name: "To the end" }).click(),
    `part ${lines - 1} of`,
  );
  figures.log_find_ms = await since(() => page.getByRole("textbox", { name: "Find in the log" }).fill(needle), needle);
  await page.context().close();
  return figures;
}
