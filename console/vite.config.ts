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
 * The contract without its schemas: where each route is, and what of a request goes where. The schemas check requests on the
 * server and types here; in the browser they would weigh more than the screens do.
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

/** In place of each file its brotli, where that saves something: the package holds each once, and the server makes the rest of it. */
function packed(): Plugin {
  return {
    name: "carillon-packed",
    closeBundle() {
      const folder = join(outDir, "assets");
      for (const name of readdirSync(folder)) {
        const body = readFileSync(join(folder, name));
        if (!/\.(?:js|css|svg)$/.test(name) || body.length < 1_024) continue;
        // Above 9 it takes ten times as long for two hundredths less.
        const params = { [constants.BROTLI_PARAM_QUALITY]: 9, [constants.BROTLI_PARAM_SIZE_HINT]: body.length };
        writeFileSync(join(folder, `${name}.br`), brotliCompressSync(body, { params }));
        rmSync(join(folder, name));
      }
    },
  };
}

export default defineConfig({
  root: fileURLToPath(new URL(".", import.meta.url)),
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
