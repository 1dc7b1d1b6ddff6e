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

/**
 * A plugin that writes `screens.json`: for each path of the router the files of its screen that the page does not name. The server names
 * them in the page, so that the browser requests them together with the page's own files.
 */
function screenFiles(): Plugin {
  const router = readFileSync(new URL("src/router.tsx", import.meta.url), "utf8");
  const routes = [...router.matchAll(/createRoute\(\{[^}]*?path: "([^"]+)"[^}]*?import\("\.\/([^"]+)"\)/g)];
  if (routes.length !== router.split("createRoute({").length - 1)
    throw new Error("router.tsx has a route whose path or screen was not found");
  return {
    name: "carillon-screens",
    generateBundle(_, bundle) {
      // Copied once: the bundler builds these lists anew at each access.
      const chunks = Object.values(bundle).flatMap((file) =>
        file.type === "chunk"
          ? [
              {
                name: file.fileName,
                modules: file.moduleIds,
                imports: file.imports,
                css: file.viteMetadata?.importedCss,
              },
            ]
          : [],
      );
      const byName = new Map(chunks.map((chunk) => [chunk.name, chunk]));
      const filesOf = (name: string, found = new Set<string>()): Set<string> => {
        const chunk = byName.get(name);
        if (found.has(name) || !chunk) return found;
        for (const file of [name, ...(chunk.css ?? [])]) found.add(file);
        for (const next of chunk.imports) filesOf(next, found);
        return found;
      };
      const chunkOf = (source: string) => {
        const chunk = chunks.find(({ modules }) => modules.some((id) => id.endsWith(`/console/${source}`)));
        if (!chunk) throw new Error(`${source} is in no file`);
        return chunk.name;
      };
      const initial = filesOf(chunkOf("index.html"));
      const screens = routes.map(([, path, source]) => ({
        path,
        files: [...filesOf(chunkOf(`src/${source}`))].filter((file) => !initial.has(file)),
      }));
      this.emitFile({ type: "asset", fileName: "screens.json", source: JSON.stringify(screens) });
    },
  };
}

/** True for the modules of which lists, cards, fields and dialogs are made; not for large ones that few screens need. */
const isPart = (id: string): boolean =>
  /\/console\/src\/parts\/(?:layout|state|table|value)\/|\/node_modules\/@(?:mantine|tanstack|tabler)\//.test(id) &&
  !/\/NumberInput\//.test(id);

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
  plugins: [react(), contractRoutes(), screenFiles(), packed(), thirdParty()],
  html: { cspNonce: "CARILLON-NONCE" },
  build: {
    outDir,
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 800,
    rolldownOptions: {
      output: {
        codeSplitting: {
          groups: [
            // One file for all that every page needs, and few files for what several screens share: each file is a request.
            { name: "base", tags: ["$initial"], priority: 2 },
            { name: "parts", test: isPart, minShareCount: 5, priority: 1 },
            { name: "acts", test: /\/console\/src\/tasks\//, minShareCount: 4 },
          ],
        },
      },
    },
  },
});
