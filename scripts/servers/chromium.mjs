/**
 * Finds Chromium, which the tests of the console drive. Each test starts its own. The headless shell is Chromium without windows and their
 * interface: it loads a page of the console in half the time, and the tests of the console take a fifth less.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { ask, programFolders } from "./server.mjs";

const variable = "CARILLON_TEST_CHROMIUM";
const names = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/** @type {Omit<import("./server.mjs").ServerKind, "start">} */
export const chromium = {
  variable,
  title: "Chromium",
  debian: ["chromium-headless-shell"],
  advice: "Install it (Debian: apt-get install chromium; macOS: brew install --cask chromium).",
  find() {
    const own = process.env[variable];
    const programs = [
      ...(own ? [own] : []),
      // Debian's wrappers are not used, because they add the configuration of the machine's administrator.
      "/usr/lib/chromium/chromium-headless-shell",
      "/usr/lib/chromium/chromium",
      ...programFolders(["/usr/bin", "/opt/homebrew/bin", "/usr/local/bin", "/snap/bin"]).flatMap((folder) =>
        names.map((name) => join(folder, name)),
      ),
      "/Applications/Chromium.app/Contents/MacOS/Chromium",
      "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    ];
    for (const program of programs) {
      const version = existsSync(program) && /(\d+[.\d]*)/.exec(ask(program, ["--version"]) ?? "")?.[1];
      if (version) return { bin: program, version, env: { [variable]: program } };
    }
    return undefined;
  },
};
