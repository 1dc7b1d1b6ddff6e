/**
 * `node scheduler/bundle.mjs`: bundles the compiled files in dist into lib, which the package contains. 200 files in one folder instead of
 * 500 in a hundred folders halve the time of `import "carillon"`. Packages under `dependencies` in package.json are not bundled, because an
 * application shares them with Carillon (the pool of `pg`, the registry of `prom-client`). Those under `devDependencies` are bundled, each
 * in a file of its own and minified, so that they add nothing to an application's node_modules; `lib/third-party.txt` lists them.
 */
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "rolldown";
import { minifySync } from "rolldown/utils";
import { packageOf, thirdParty } from "../scripts/third-party.mjs";

const at = (/** @type {string} */ path) => fileURLToPath(new URL(path, import.meta.url));
const { exports, dependencies, peerDependencies } = JSON.parse(readFileSync(at("package.json"), "utf8"));

/**
 * @type {Record<string, string>} entry files by their name in lib: the package's exports, the command, and files of threads or processes
 */
const input = {
  cli: at("dist/cli/main.js"),
  host: at("dist/executors/isolate/host.js"),
  "parent-watch": at("dist/executors/isolate/parent-watch.js"),
  "stand-in-thread": at("dist/library/stand-in-thread.js"),
};
for (const one of /** @type {{ types: string, default: string }[]} */ (Object.values(exports)))
  input[one.default.replace(/^\.\/lib\/|\.js$/g, "")] = at(one.types.replace(/\.d\.ts$/, ".js"));

const outside = new Set(Object.keys({ ...dependencies, ...peerDependencies }));
// The declarations refer to zod's types, so it is a dependency. Its code is bundled, in one file instead of 95, half of them texts in
// languages that Carillon does not use.
outside.delete("zod");
const nameOf = (/** @type {string} */ id) => /^(?:@[^/]+\/)?[^/]+/.exec(id)?.[0] ?? id;
const isOutside = (/** @type {string} */ id) => id.startsWith("node:") || outside.has(nameOf(id));

/**
 * Returns the name of a bundled package's file, null for a module of Carillon. Each package has its own file, which is loaded only by code
 * that needs the package.
 * @param {string} id
 */
function fileOf(id) {
  const name = packageOf(id)?.split("/node_modules/").at(-1);
  return name === undefined ? null : `third-party-${name.replace("@", "").replace("/", "-")}`;
}

/** @type {import("rolldown").Plugin} */
const shortenedAndChecked = {
  name: "carillon-shortened-and-checked",
  generateBundle(_options, bundle) {
    for (const chunk of Object.values(bundle)) {
      if (chunk.type !== "chunk") continue;
      // Rolldown does not rewrite a URL of the form `new URL("./FILE", import.meta.url)`, so FILE must exist in the same folder, as in
      // dist.
      for (const [, name = ""] of chunk.code.matchAll(/new URL\("\.\/([^"]+)", import\.meta\.url\)/g))
        if (!(name in bundle))
          throw new Error(`${chunk.fileName} starts ${name}, which is no file of lib: name it as an input`);
      const unknown = [...chunk.imports, ...chunk.dynamicImports].filter((id) => !(id in bundle) && !isOutside(id));
      if (unknown.length > 0) throw new Error(`${chunk.fileName} imports ${unknown.join(", ")}`);
      // Minify only now, because Rolldown would print a chunk that was minified earlier with white space again.
      if (chunk.moduleIds.length > 0 && chunk.moduleIds.every((id) => packageOf(id) !== undefined)) {
        const { code, errors } = minifySync(chunk.fileName, chunk.code, { module: true });
        if (errors.length > 0) throw new Error(`${chunk.fileName}: ${errors[0]?.message}`);
        chunk.code = code;
      }
    }
  },
};
/** Removes comments from the SQL of migrations, because they are for readers of the source. @type {import("rolldown").Plugin} */
const withoutSqlComments = {
  name: "carillon-without-sql-comments",
  transform: (code, id) => (/\/migrations\/[^/]+\.js$/.test(id) ? code.replace(/^ *-- .*\n/gm, "") : null),
};
for (const [name, path] of Object.entries(input))
  if (!existsSync(path)) throw new Error(`${name}: there is no ${path}`);

await build({
  input,
  platform: "node",
  // The compiler has already applied the TypeScript settings.
  tsconfig: false,
  external: isOutside,
  plugins: [withoutSqlComments, shortenedAndChecked, thirdParty()],
  output: {
    dir: at("lib"),
    cleanDir: true,
    format: "esm",
    entryFileNames: "[name].js",
    chunkFileNames: "[name]-[hash].js",
    // Users read the docstrings in the declarations, so the bundled code does not contain them.
    comments: { jsdoc: false },
    codeSplitting: { groups: [{ name: fileOf, debugName: "third party" }] },
  },
});
