/**
 * `node scheduler/bundle.mjs`: bundles what the compiler wrote to dist into lib, which is what users load. Some 200 files in one folder
 * in place of 500 in a hundred: `import "carillon"` takes half the time. Packages that package.json names under `dependencies` stay
 * outside, for an application shares them with us (the pool of `pg`, the registry of `prom-client`). Those under `devDependencies` are
 * built in, each as a file of its own without white space, so that they add nothing to an application's node_modules;
 * `lib/third-party.txt` names them.
 */
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "rolldown";
import { minifySync } from "rolldown/utils";
import { packageOf, thirdParty } from "../scripts/third-party.mjs";

const at = (/** @type {string} */ path) => fileURLToPath(new URL(path, import.meta.url));
const { exports, dependencies, peerDependencies } = JSON.parse(readFileSync(at("package.json"), "utf8"));

/** @type {Record<string, string>} by name in lib: what the exports name, the command, and what is started as a thread or a process */
const input = {
  cli: at("dist/cli/main.js"),
  host: at("dist/executors/isolate/host.js"),
  "parent-watch": at("dist/executors/isolate/parent-watch.js"),
  "stand-in-thread": at("dist/library/stand-in-thread.js"),
};
for (const one of /** @type {{ types: string, default: string }[]} */ (Object.values(exports)))
  input[one.default.replace(/^\.\/lib\/|\.js$/g, "")] = at(one.types.replace(/\.d\.ts$/, ".js"));

const outside = new Set(Object.keys({ ...dependencies, ...peerDependencies }));
const nameOf = (/** @type {string} */ id) => /^(?:@[^/]+\/)?[^/]+/.exec(id)?.[0] ?? id;
const isOutside = (/** @type {string} */ id) => id.startsWith("node:") || outside.has(nameOf(id));

/** Each package that is built in is a file of its own, so that its code is loaded only with what needs it. @param {string} id */
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
      // Beside the file that names it, as in dist: Rolldown leaves such an address as it is.
      for (const [, name = ""] of chunk.code.matchAll(/new URL\("\.\/([^"]+)", import\.meta\.url\)/g))
        if (!(name in bundle))
          throw new Error(`${chunk.fileName} starts ${name}, which is no file of lib: name it as an input`);
      const unknown = [...chunk.imports, ...chunk.dynamicImports].filter((id) => !(id in bundle) && !isOutside(id));
      if (unknown.length > 0) throw new Error(`${chunk.fileName} imports ${unknown.join(", ")}`);
      // Here and not when the chunk is rendered: Rolldown writes its code anew after that, with white space.
      if (chunk.moduleIds.length > 0 && chunk.moduleIds.every((id) => packageOf(id) !== undefined)) {
        const { code, errors } = minifySync(chunk.fileName, chunk.code, { module: true });
        if (errors.length > 0) throw new Error(`${chunk.fileName}: ${errors[0]?.message}`);
        chunk.code = code;
      }
    }
  },
};
/** Comments in the SQL of migrations are for readers of the source. @type {import("rolldown").Plugin} */
const withoutSqlComments = {
  name: "carillon-without-sql-comments",
  transform: (code, id) => (/\/migrations\/[^/]+\.js$/.test(id) ? code.replace(/^ *-- .*\n/gm, "") : null),
};
for (const [name, path] of Object.entries(input))
  if (!existsSync(path)) throw new Error(`${name}: there is no ${path}`);

await build({
  input,
  platform: "node",
  // The compiler has read it already.
  tsconfig: false,
  external: isOutside,
  plugins: [withoutSqlComments, shortenedAndChecked, thirdParty()],
  output: {
    dir: at("lib"),
    cleanDir: true,
    format: "esm",
    entryFileNames: "[name].js",
    chunkFileNames: "[name]-[hash].js",
    // Docstrings are for readers of the source; users read those of the declarations.
    comments: { jsdoc: false },
    codeSplitting: { groups: [{ name: fileOf, debugName: "third party" }] },
  },
});
