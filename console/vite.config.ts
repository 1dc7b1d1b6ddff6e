import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants } from "node:zlib";
import react from "@vitejs/plugin-react";
import { routeIds, shapeOf } from "carillon/contract";
import { defineConfig, type Plugin } from "vite";
import { thirdParty } from "../scripts/third-party.mjs";

const outDir = fileURLToPath(new URL("dist/site", import.meta.url));

/**
 * A plugin that provides the API routes as a module: method, path, and which parameters belong to the query or the body. The contract's
 * schemas are omitted: the browser does not need them, and they would be larger than all screens.
 */
function contractRoutes(): Plugin {
  const id = "virtual:carillon-routes";
  return {
    name: "carillon-routes",
    resolveId: (source) => (source === id ? `\0${id}` : null),
    load(asked) {
      if (asked !== `\0${id}`) return null;
      const table = Object.fromEntries(
        routeIds.map((routeId) => {
          const { method, path, query, body, etag, answer, policy } = shapeOf(routeId);
          const names = query ? Object.keys(query.shape) : [];
          return [
            routeId,
            {
              method,
              path,
              policy,
              query: names,
              body: body !== undefined,
              etag: etag === "demands",
              empty: answer === null,
            },
          ];
        }),
      );
      return `export default ${JSON.stringify(table)};`;
    },
  };
}

/** A plugin that replaces JavaScript, CSS and SVG files of at least 1 KiB by their Brotli form, so that the package holds each once. */
function packed(): Plugin {
  return {
    name: "carillon-packed",
    closeBundle() {
      const folder = join(outDir, "assets");
      for (const name of readdirSync(folder)) {
        const body = readFileSync(join(folder, name));
        if (!/\.(?:js|css|svg)$/.test(name) || body.length < 1_024) continue;
        // Qualities above 9 take much longer and save little.
        const params = { [constants.BROTLI_PARAM_QUALITY]: 9, [constants.BROTLI_PARAM_SIZE_HINT]: body.length };
        writeFileSync(join(folder, `${name}.br`), brotliCompressSync(body, { params }));
        rmSync(join(folder, name));
      }
    },
  };
}

export default defineConfig({
  root: fileURLToPath(new URL(".", import.meta.url)),
  // Files refer to each other by relative addresses, and the server puts its base path before those in the page.
  base: "./",
  plugins: [react(), contractRoutes(), packed(), thirdParty()],
  html: { cspNonce: "CARILLON-NONCE" },
  build: {
    outDir,
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    modulePreload: { polyfill: false },
    manifest: "manifest.json",
  },
});
