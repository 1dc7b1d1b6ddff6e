/** The site of these pages: `npm run docs` builds and serves it. The sidebar is docs/README.md, which lists every page once. */
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitepress";

const docs = fileURLToPath(new URL("..", import.meta.url));
const repository = join(docs, "..");
const contents = "README.md";

/** @param {string} page its path below docs/ */
const read = (page) => readFileSync(join(docs, page), "utf8");

/** @typedef {{ title: string, pages: { text: string, page: string, about: string }[] }} Section */

/** The sections of docs/README.md; a page belongs to the first line that links to it. @returns {Section[]} */
function sections() {
  const seen = new Set();
  return read(contents)
    .split(/^## /m)
    .slice(1)
    .map((section) => {
      const [title = "", ...lines] = section.split("\n");
      const pages = [...lines.join("\n").matchAll(/^- \[([^\]]+)\]\(([\w./-]+\.md)\)(?::? ?(.*(?:\n {2}.*)*))/gm)]
        .map(([, text = "", page = "", about = ""]) => ({ text, page, about: about.replaceAll(/\s+/g, " ").trim() }))
        .filter(({ page }) => !page.startsWith("..") && !seen.has(page) && seen.add(page));
      return { title, pages };
    });
}

/** @param {string} page */
const addressOf = (page) => `/${page.replace(/(?:README)?\.md$/, "")}`;

/** The anchors that GitHub gives to headings, so that a link holds on both. @param {string} heading */
const slugify = (heading) =>
  heading
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\p{M}\p{Pc} -]/gu, "")
    .replaceAll(" ", "-");

/** The linked files that are no pages, by their path in the repository: the site has them as plain text. @type {Set<string>} */
const sources = new Set();

/** @param {string} path in the repository */
const sourceAddress = (path) => `/source/${path.replace(/\/$/, "")}.txt`;

/**
 * Leads links to files of the repository to the site's copies.
 * @param {import("vitepress").MarkdownRenderer} md
 */
function linkSources(md) {
  md.core.ruler.push("sources", ({ tokens, env }) => {
    for (const link of tokens.flatMap(({ children }) => children ?? []).filter(({ type }) => type === "link_open")) {
      const [href = ""] = String(link.attrGet("href")).split("#");
      if (href === "" || /^(?:[a-z]+:|\/)/.test(href)) continue;
      const path = posix.join("docs", posix.dirname(env.relativePath ?? ""), href);
      if (path === `docs/${contents}`) link.attrSet("href", "/");
      if (path.startsWith("docs/") && path.endsWith(".md")) continue;
      if (!existsSync(join(repository, path)))
        throw new Error(`${env.relativePath} links to ${href}, which does not exist`);
      sources.add(path);
      link.attrSet("href", sourceAddress(path));
      link.attrSet("target", "_self"); // leaves the link as it is: this is no page of the site
    }
  });
}

/** The lists of rooms have no grammar to be coloured by. @param {import("vitepress").MarkdownRenderer} md */
function plainRooms(md) {
  md.core.ruler.push("rooms", ({ tokens }) => {
    for (const token of tokens) if (token.type === "fence" && token.info === "rooms") token.info = "txt";
  });
}

/** A text that looks like an expression of the page's template stays a text. @param {import("vitepress").MarkdownRenderer} md */
function keepBraces(md) {
  for (const rule of ["text", "code_inline"]) {
    const render = md.renderer.rules[rule];
    md.renderer.rules[rule] = (...given) => String(render?.(...given)).replaceAll("{{", "&#123;&#123;");
  }
}

/** Writes a file of the site. @param {string} path @param {string} text */
function write(path, text) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

/** Adds the copies of linked files, each page as Markdown, and llms.txt. @param {import("vitepress").SiteConfig} site */
function addTexts({ outDir, pages }) {
  for (const path of sources) {
    const from = join(repository, path);
    const to = join(outDir, sourceAddress(path));
    if (statSync(from).isDirectory()) write(to, `${readdirSync(from).sort().join("\n")}\n`);
    else {
      mkdirSync(dirname(to), { recursive: true });
      cpSync(from, to);
    }
  }
  for (const page of pages) write(join(outDir, page === contents ? "index.md" : page), read(page));
  const listed = sections().map(({ title, pages: of }) => {
    const lines = of.map(({ text, page, about }) => `- [${text}](/${page})${about === "" ? "" : `: ${about}`}`);
    return `## ${title}\n\n${lines.join("\n")}\n`;
  });
  const [, about = ""] = /^# .*\n\n((?:.+\n)+)/.exec(read(contents)) ?? [];
  write(join(outDir, "llms.txt"), `# Carillon\n\n> ${about.replaceAll(/\s+/g, " ").trim()}\n\n${listed.join("\n")}`);
}

const sidebar = sections().map(({ title, pages }) => ({
  text: title,
  items: pages.map(({ text, page }) => ({ text, link: addressOf(page) })),
}));

export default defineConfig({
  title: "Carillon",
  description: "A distributed task scheduler for TypeScript",
  lang: "en-GB",
  head: [["link", { rel: "icon", href: "data:," }]],
  rewrites: { "README.md": "index.md" },
  srcExclude: ["figures/**"],
  markdown: {
    html: false,
    anchor: { slugify },
    config(md) {
      md.set({ html: false });
      linkSources(md);
      keepBraces(md);
      plainRooms(md);
    },
  },
  themeConfig: {
    search: { provider: "local" },
    outline: [2, 3],
    nav: [
      { text: "Quick start", link: "/guide/quick-start" },
      { text: "Task options", link: "/task-options" },
      { text: "Command line", link: "/cli" },
      { text: "Errors", link: "/errors" },
    ],
    sidebar,
  },
  buildEnd: addTexts,
});
