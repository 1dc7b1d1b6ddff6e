/**
 * `npm run sbom [-- FOLDER]`: writes a software bill of materials (CycloneDX, JSON) for each published package, into FOLDER or
 * `dist/sbom/`. It names the package's dependencies, from the lock file, and the packages that are built into it, as the last build
 * recorded them; so run `npm run build` before.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { root } from "./ready.mjs";
import { showsUsage } from "./usage.mjs";

/**
 * By workspace: the file in which a build records the packages that it has built in; undefined: nothing is built in.
 * @type {Record<string, string | undefined>}
 */
const workspaces = {
  zookeeper: undefined,
  embedded: undefined,
  scheduler: "lib/third-party.txt",
  console: "dist/site/third-party.txt",
};

/** @typedef {{ "bom-ref": string, name: string, version: string, properties?: object[] }} Component */
/** @typedef {{ metadata: { component: Component }, components: Component[], dependencies: { ref: string, dependsOn: string[] }[] }} Bom */

/** Returns the bill of the whole repository: its packages, and everything that builds and tests need. @returns {Bom} */
function everything() {
  const args = ["sbom", "--sbom-format", "cyclonedx", "--sbom-type", "library", "--package-lock-only"];
  const { status, stdout, stderr } = spawnSync("npm", args, { cwd: root, encoding: "utf8", maxBuffer: 2 ** 26 });
  if (status !== 0) throw new Error(`npm sbom failed: ${stderr}`);
  return JSON.parse(stdout);
}

/** @param {string} workspace @returns {string[]} the packages that are built into the workspace, as name@version */
function builtInto(workspace) {
  const told = workspaces[workspace];
  if (told === undefined) return [];
  const file = join(root, workspace, told);
  if (!existsSync(file)) throw new Error(`${file} is not there: run npm run build first`);
  const named = readFileSync(file, "utf8").matchAll(/^(\S+) (\d+\.\d+\.\d\S*) \([^)]*\)$/gm);
  return [...named].map(([, name, version]) => `${name}@${version}`);
}

/** @param {string} ref such as @carillon/console@0.1.0 */
const nameOf = (ref) => ref.slice(0, ref.lastIndexOf("@"));

/** @param {Bom} bom @param {string} workspace */
function billOf(bom, workspace) {
  const { name, version, dependencies = {}, optionalDependencies = {} } = manifestOf(workspace);
  const own = `${name}@${version}`;
  const needs = new Map(bom.dependencies.map(({ ref, dependsOn }) => [ref, dependsOn]));
  const ours = new Set(Object.keys(workspaces).map((one) => manifestOf(one).name));
  const brings = Object.keys({ ...dependencies, ...optionalDependencies });
  const direct = (needs.get(own) ?? []).filter((ref) => brings.includes(nameOf(ref)));
  const builtIn = builtInto(workspace);
  const kept = new Set(direct);
  // The bill of another Carillon package has that package's dependencies and built-in packages, so they are not followed here.
  for (const ref of kept) if (!ours.has(nameOf(ref))) for (const next of needs.get(ref) ?? []) kept.add(next);
  const all = new Set([...kept, ...builtIn]);
  const component = bom.components.find((one) => one["bom-ref"] === own);
  if (component === undefined) throw new Error(`npm sbom does not name ${own}`);
  const components = bom.components
    .filter((one) => all.has(one["bom-ref"]))
    .map((found) => {
      // npm names a workspace after its folder, so the name is taken from the reference.
      const one = { ...found, name: nameOf(found["bom-ref"]) };
      if (!builtIn.includes(one["bom-ref"])) return one;
      const properties = [...(one.properties ?? []), { name: "carillon:built-in", value: "true" }];
      return { ...one, scope: "required", properties };
    });
  const lacking = [...all].filter((ref) => !components.some((one) => one["bom-ref"] === ref));
  if (lacking.length > 0) throw new Error(`npm sbom does not name ${lacking.join(", ")}`);
  const edges = [...all].map((ref) => ({ ref, dependsOn: (needs.get(ref) ?? []).filter((next) => all.has(next)) }));
  return {
    ...bom,
    metadata: { ...bom.metadata, component: { ...component, name } },
    components,
    dependencies: [{ ref: own, dependsOn: [...direct, ...builtIn] }, ...edges],
  };
}

/** @param {string} workspace @returns {{ name: string, version: string, dependencies?: object, optionalDependencies?: object }} */
const manifestOf = (workspace) => JSON.parse(readFileSync(join(root, workspace, "package.json"), "utf8"));

if (!showsUsage("scripts/sbom.mjs")) {
  const folder = resolve(process.argv[2] ?? join(root, "dist/sbom"));
  mkdirSync(folder, { recursive: true });
  const bom = everything();
  for (const workspace of Object.keys(workspaces)) {
    const { name, version } = manifestOf(workspace);
    const file = join(folder, `${name.replace("@", "").replace("/", "-")}-${version}.cdx.json`);
    writeFileSync(file, `${JSON.stringify(billOf(bom, workspace), null, 2)}\n`);
    process.stdout.write(`${file}\n`);
  }
}
