/**
 * A plugin for Rolldown and Vite that writes `third-party.txt` beside the output. The file lists each package that was built in, with its
 * version and license, as the licenses require of everyone who distributes the code.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Returns the folder of the package that a module belongs to; undefined for our own modules. @param {string} id */
export const packageOf = (id) => /^\0?(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(id)?.[1];

/** @param {string} folder */
function told(folder) {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const file = readdirSync(folder).find((one) => /^licen[cs]e/i.test(one));
  const text =
    file === undefined ? "(the package holds no license text)" : readFileSync(join(folder, file), "utf8").trim();
  return { key: `${name} ${version}`, text: `${name} ${version} (${license})\n\n${text}\n` };
}

/** @returns {import("rolldown").Plugin} */
export const thirdParty = () => ({
  name: "carillon-third-party",
  generateBundle(_options, bundle) {
    const folders = new Set();
    for (const file of Object.values(bundle))
      if (file.type === "chunk") for (const id of file.moduleIds) folders.add(packageOf(id));
    const packages = [...folders].filter((folder) => folder && existsSync(join(folder, "package.json"))).map(told);
    packages.sort((one, other) => (one.key < other.key ? -1 : 1));
    const source = packages.map(({ text }) => text).join(`\n${"-".repeat(80)}\n\n`);
    this.emitFile({ type: "asset", fileName: "third-party.txt", source });
  },
});
