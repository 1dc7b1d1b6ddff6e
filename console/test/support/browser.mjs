/** Launches Chromium with a fresh profile, and with flags that suppress the browser's own network requests. */
import { chromium } from "playwright-core";

const flags = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--force-color-profile=srgb",
];

export async function openBrowser() {
  const executablePath = process.env.CARILLON_TEST_CHROMIUM;
  if (!executablePath)
    throw new Error(
      "CARILLON_TEST_CHROMIUM is not set: run this as `npm test -- FILE…`, which finds or installs Chromium.",
    );
  // playwright gives each browser that it launches a new user-data-dir, and removes it.
  return chromium.launch({ executablePath, headless: true, args: flags });
}
