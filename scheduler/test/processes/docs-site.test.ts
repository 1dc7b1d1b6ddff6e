import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, it } from "vitest";
import { errorCodes } from "../../src/base/errors.ts";
import { root } from "../support/packed.ts";

const site = join(root, "docs/.vitepress/dist");
/** The HTML of each page, by its path below the site's root. */
const pages = new Map<string, string>();
const pageNames = readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" })
  .filter((path) => path.endsWith(".md") && !path.startsWith("."))
  .map((path) => path.replace(/README\.md$/, "index.md"));
const isChinese = (name: string) => name.startsWith("zh/");

const namesIn = (html: string, pattern: RegExp) => [...html.matchAll(pattern)].map(([, name = ""]) => name);
const decoded = (text: string) => decodeURIComponent(text.replaceAll("&amp;", "&"));

beforeAll(async () => {
  const { buildSite } = (await import(new URL("scripts/docs.mjs", `file://${root}`).href)) as {
    buildSite(): void;
  };
  buildSite();
  for (const path of readdirSync(site, { recursive: true, encoding: "utf8" }))
    if (path.endsWith(".html")) pages.set(path, readFileSync(join(site, path), "utf8"));
});

it("has every page of docs/, each once in its sidebar", () => {
  const expected = pageNames.map((name) => name.replace(/\.md$/, ".html"));
  expect([...pages.keys()].sort()).toEqual([...expected, "404.html"].sort());
  for (const home of ["index.html", "zh/index.html"]) {
    const html = pages.get(home) ?? "";
    const sidebar = html.slice(html.indexOf("VPSidebarNav"), html.indexOf('id="VPContent"'));
    const linked = namesIn(sidebar, /href="\/([^"]*\.html)"/g);
    const others = expected.filter((name) => name !== home && isChinese(name) === isChinese(home));
    expect(linked.sort()).toEqual(others.sort());
  }
});

it("has no link to a missing page, file or anchor", () => {
  const broken: string[] = [];
  let [links, anchors] = [0, 0];
  for (const [path, html] of pages) {
    if (path === "404.html") continue;
    for (const href of namesIn(html, /<a\b[^>]*?\shref="([^"]*)"/g)) {
      const url = new URL(decoded(href), `http://site/${path}`);
      if (url.host !== "site") continue;
      links++;
      const target = url.pathname === "/" ? "index.html" : url.pathname.slice(1);
      const anchor = decoded(url.hash.slice(1));
      if (!existsSync(join(site, target))) broken.push(`${path}: ${href}`);
      else if (anchor !== "") {
        anchors++;
        if (!namesIn(pages.get(target) ?? "", /\sid="([^"]*)"/g).includes(anchor)) broken.push(`${path}: ${href}`);
      }
    }
  }
  expect(broken).toEqual([]);
  expect([links > 1_000, anchors > 500]).toEqual([true, true]);
});

it("has an anchor for each error code, to which the command line's errors link", () => {
  const addresses = namesIn(pages.get("reference/errors.html") ?? "", /\sid="([^"]*)"/g);
  for (const code of Object.keys(errorCodes)) expect(addresses).toContain(code.toLowerCase());
});

it("has each page as Markdown, and lists all of them in llms.txt", () => {
  const listed = namesIn(readFileSync(join(site, "llms.txt"), "utf8"), /^- \[[^\]]+\]\(\/([^)]+)\)/gm);
  expect(listed.sort()).toEqual(pageNames.filter((name) => name !== "index.md" && !isChinese(name)).sort());
  for (const name of pageNames) expect(existsSync(join(site, name)), name).toBe(true);
});

it("has guides of at most 1,500 words", () => {
  const words = pageNames
    .filter((name) => name.startsWith("guide/"))
    .map((name) => [name, readFileSync(join(site, name), "utf8").split(/\s+/).length] as const);
  expect(words.length).toBeGreaterThan(10);
  expect(words.filter(([, count]) => count > 1_500)).toEqual([]);
});
