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

/**
 * The sections of a README.md; a page belongs to the first line that links to it.
 * @param {string} folder "" or "zh/" @returns {Section[]}
 */
function sections(folder) {
  const seen = new Set();
  return read(`${folder}${contents}`)
    .split(/^## /m)
    .slice(1)
    .map((section) => {
      const [title = "", ...lines] = section.split("\n");
      const pages = [...lines.join("\n").matchAll(/^- \[([^\]]+)\]\(([\w./-]+\.md)\)(?:[:：]? ?(.*(?:\n {2}.*)*))/gm)]
        .map(([, text = "", page = "", about = ""]) => ({
          text,
          page: posix.join(folder, page),
          about: about.replaceAll(/\s+/g, " ").trim(),
        }))
        .filter(({ page }) => page.startsWith(folder) && !page.startsWith("..") && !seen.has(page) && seen.add(page));
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
      if (path.endsWith(contents) && path.startsWith("docs/"))
        link.attrSet("href", path.slice("docs".length, -contents.length));
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
  for (const page of pages) write(join(outDir, page.replace(contents, "index.md")), read(page));
  const listed = sections("").map(({ title, pages: of }) => {
    const lines = of.map(({ text, page, about }) => `- [${text}](/${page})${about === "" ? "" : `: ${about}`}`);
    return `## ${title}\n\n${lines.join("\n")}\n`;
  });
  const [, about = ""] = /^# .*\n\n((?:.+\n)+)/.exec(read(contents)) ?? [];
  write(join(outDir, "llms.txt"), `# Carillon\n\n> ${about.replaceAll(/\s+/g, " ").trim()}\n\n${listed.join("\n")}`);
}

/** @param {string} folder */
const sidebarOf = (folder) =>
  sections(folder).map(({ title, pages }) => ({
    text: title,
    items: pages.map(({ text, page }) => ({ text, link: addressOf(page) })),
  }));

const chinese = {
  label: "简体中文",
  lang: "zh-CN",
  description: "TypeScript 分布式任务调度",
  themeConfig: {
    nav: [{ text: "快速开始", link: "/zh/guide/quick-start" }],
    sidebar: sidebarOf("zh/"),
    outline: { level: /** @type {[number, number]} */ ([2, 3]), label: "本页内容" },
    docFooter: { prev: "上一页", next: "下一页" },
    sidebarMenuLabel: "目录",
    returnToTopLabel: "返回顶部",
    darkModeSwitchLabel: "深色模式",
    langMenuLabel: "语言",
  },
};
const chineseSearch = {
  button: { buttonText: "搜索", buttonAriaLabel: "搜索" },
  modal: {
    noResultsText: "没有结果",
    resetButtonTitle: "清除",
    backButtonTitle: "返回",
    displayDetails: "显示详情",
    footer: { selectText: "选择", navigateText: "移动", closeText: "关闭" },
  },
};

export default defineConfig({
  title: "Carillon",
  description: "A distributed task scheduler for TypeScript",
  lang: "en-GB",
  head: [["link", { rel: "icon", href: "data:," }]],
  rewrites: { "README.md": "index.md", "zh/README.md": "zh/index.md" },
  locales: { root: { label: "English" }, zh: chinese },
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
    search: { provider: "local", options: { locales: { zh: { translations: chineseSearch } } } },
    i18nRouting: false, // not every page is in both languages
    outline: [2, 3],
    nav: [
      { text: "Quick start", link: "/guide/quick-start" },
      { text: "Task options", link: "/reference/task-options" },
      { text: "Command line", link: "/reference/cli" },
      { text: "Errors", link: "/reference/errors" },
    ],
    sidebar: sidebarOf(""),
  },
  buildEnd: addTexts,
});
