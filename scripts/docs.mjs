/**
 * `npm run docs`: builds the site of docs/ and serves it on this machine alone.
 *
 *   npm run docs                      at http://127.0.0.1:4173, until Ctrl-C
 *   npm run docs -- --port 8080
 *   npm run docs -- --build           only builds it, into docs/.vitepress/dist
 */
import { spawnSync } from "node:child_process";
import { createReadStream, statSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { fail, installDependencies, requireNode, root, say, Trouble } from "./ready.mjs";
import { showsUsage } from "./usage.mjs";

export const site = join(root, "docs/.vitepress/dist");

const types = /** @type {Record<string, string>} */ ({
  ".css": "text/css",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".json": "application/json",
  ".md": "text/plain; charset=utf-8",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".txt": "text/plain; charset=utf-8",
  ".woff2": "font/woff2",
});

export function buildSite() {
  const vitepress = join(root, "node_modules/vitepress/bin/vitepress.js");
  const done = spawnSync(process.execPath, [vitepress, "build", "docs"], { cwd: root, stdio: ["ignore", 2, 2] });
  if (done.status !== 0) throw new Trouble("the site could not be built, see above.");
}

/** Returns the file that a path of the site refers to, or undefined. @param {string} path begins with a slash */
function fileOf(path) {
  const file = join(site, normalize(path));
  const found = [file, `${file}.html`, join(file, "index.html")].find((one) =>
    statSync(one, { throwIfNoEntry: false })?.isFile(),
  );
  return found?.startsWith(site) ? found : undefined;
}

/** Serves the site. @param {number} port 0: any free port @returns {Promise<import("node:http").Server>} once the server listens */
export function serveSite(port) {
  const server = createServer(({ url = "/" }, response) => {
    const file = fileOf(new URL(url, "http://127.0.0.1").pathname);
    const shown = file ?? join(site, "404.html");
    response.writeHead(file ? 200 : 404, { "content-type": types[extname(shown)] ?? "application/octet-stream" });
    createReadStream(shown).pipe(response);
  });
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", () => resolve(server));
  });
}

async function main() {
  if (showsUsage("scripts/docs.mjs")) return;
  const { values } = parseArgs({ options: { port: { type: "string", default: "4173" }, build: { type: "boolean" } } });
  requireNode();
  installDependencies();
  buildSite();
  if (values.build) return;
  await serveSite(Number(values.port));
  say(`http://127.0.0.1:${values.port}`);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) await main().catch(fail);
