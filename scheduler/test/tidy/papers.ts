import { importsOf } from "./code.ts";
import { at, type HouseFile, isCode, isSource, isTest, type Rule } from "./tree.ts";

/** Files copied from other projects as sample input, which must stay unchanged. */
const foreign = /^examples\/.*(?:crontabs?|cron\.[a-z]+)\//;

const homes = /(?<![\w.*:/-])\/(?:work|root|home(?!\/linuxbrew)|Users)\/[\w.]+|[A-Z]:\\Users\\/g;

const workFolder = /(?<![\w.*:/-])\/work\/[\w.]+/g;

/**
 * Rule: the repository contains no home directories or other paths of one machine. Tests may invent such paths, except below
 * /work.
 */
export const noMachinePaths: Rule = (files) =>
  files
    .filter(({ path }) => !foreign.test(path) && !path.startsWith("scheduler/test/tidy/"))
    .flatMap((file) =>
      [...file.text.matchAll(isTest(file) ? workFolder : homes)].map((match) =>
        at(file, match.index, `a path of one machine: ${match[0]}`),
      ),
    );

const registries =
  /\bregistry\.[a-z\d-]+\.[a-z]+|\bnpm\.pkg\.github\.com|\bnpmmirror\b|\bartifactory\b|\bverdaccio\b/gi;

/** Rule: no file names a package registry, so that each user can choose one. The lock file has versions and hashes, but no hosts. */
export const noRegistryHosts: Rule = (files) =>
  files
    .filter(({ path }) => !path.startsWith("scheduler/test/tidy/"))
    .flatMap((file) => {
      const found = [...file.text.matchAll(registries)];
      if (file.path.endsWith("package-lock.json")) found.push(...file.text.matchAll(/"resolved": "\w+:[^"]*/g));
      return found.map((match) => at(file, match.index, `names a registry: ${match[0]}`));
    });

interface Manifest {
  readonly dependencies?: Record<string, string>;
  readonly devDependencies?: Record<string, string>;
  readonly optionalDependencies?: Record<string, string>;
  readonly peerDependencies?: Record<string, string>;
}

const packageOf = (specifier: string) =>
  specifier
    .split("/")
    .slice(0, specifier.startsWith("@") ? 2 : 1)
    .join("/");

/** Returns the package that a package of types describes; other names are returned unchanged. */
const described = (name: string) => (name.startsWith("@types/") ? name.slice("@types/".length) : name);

/** Manifests of packages that are bundled: a `devDependencies` entry that their sources import is built into the published code. */
const bundled = ["scheduler/package.json", "console/package.json"];

/**
 * Rule: every dependency, except a peer dependency, is used in the package that declares it, and published code imports only
 * packages that its own package.json declares or that are bundled.
 */
export const dependenciesUsed: Rule = (files) => {
  const wrong: string[] = [];
  for (const file of files.filter(({ path }) => /(?:^|\/)package\.json$/.test(path))) {
    const folder = file.path.slice(0, -"package.json".length);
    const manifest = JSON.parse(file.text) as Manifest;
    const shipped = { ...manifest.dependencies, ...manifest.optionalDependencies };
    const builtIn = bundled.includes(file.path) ? manifest.devDependencies : {};
    const brought = { ...shipped, ...manifest.peerDependencies, ...builtIn };
    const code = files.filter((other) => isCode(other) && other.path.startsWith(folder));
    const mentions = (name: string, among: readonly HouseFile[]) => {
      const quoted = new RegExp(`["'\`/]@?${name.replace(/[/\-.]/g, "\\$&")}["'\`/]`);
      const family = name.startsWith("@") ? `${name.split("/")[0]}/\${` : undefined; // there is one package per platform
      return (
        name === "node" ||
        among.some((other) => quoted.test(other.text) || (family !== undefined && other.text.includes(family)))
      );
    };
    for (const name of Object.keys(shipped)) {
      if (
        !mentions(
          name,
          code.filter((other) => !isTest(other)),
        )
      )
        wrong.push(`${file.path}:1 never uses ${name}`);
    }
    for (const name of Object.keys(manifest.devDependencies ?? {})) {
      if (!mentions(described(name), code)) wrong.push(`${file.path}:1 never uses ${name}`);
    }
    for (const other of folder === "" ? [] : code.filter(({ path }) => path.startsWith(`${folder}src/`))) {
      if (isTest(other)) continue;
      for (const { specifier, index } of importsOf(other.text)) {
        // Modules named `virtual:…` come from a plugin of the build.
        if (/^(?:\.|node:|virtual:)/.test(specifier)) continue;
        if (Object.hasOwn(brought, packageOf(specifier))) continue;
        wrong.push(at(other, index, `imports ${specifier}, which ${file.path} does not bring`));
      }
    }
  }
  return wrong;
};

const textOf = (files: readonly HouseFile[], path: string) => files.find((file) => file.path === path)?.text;

/** Rule: docs/reference/errors.md has one section for each code in errors.ts, in the same order, with the same meaning, and with advice. */
export const errorsListed =
  (codes: Readonly<Record<string, string>>): Rule =>
  (files) => {
    const page = "docs/reference/errors.md";
    const sections = (textOf(files, page) ?? "").split(/^##+ /m).filter((section) => /^[A-Z_]+\n/.test(section));
    const rows = sections.map((section) => section.split(/\n\n+/).map((part) => part.replaceAll("\n", " ").trim()));
    const listed = rows.map(([code]) => code);
    const wrong: string[] = [];
    for (const [code, meaning] of Object.entries(codes)) {
      const row = rows.find(([listedCode]) => listedCode === code);
      if (!row) wrong.push(`${page}:1 lacks ${code}`);
      else if (row[1] !== meaning) wrong.push(`${page}:1 ${code}: says "${row[1]}", errors.ts says "${meaning}"`);
      else if (!row[2]) wrong.push(`${page}:1 ${code}: no advice`);
    }
    for (const code of listed) if (!Object.hasOwn(codes, code as string)) wrong.push(`${page}:1 invents ${code}`);
    const order = Object.keys(codes).filter((code) => listed.includes(code));
    if (wrong.length === 0 && listed.join() !== order.join()) wrong.push(`${page}:1 has another order than errors.ts`);
    return wrong;
  };

/** Rule: every error code occurs in quotes in the sources outside of errors.ts, and in a test. */
export const errorsReal =
  (codes: Readonly<Record<string, string>>): Rule =>
  (files) => {
    const code = files.filter((file) => isCode(file) && file.path.startsWith("scheduler/"));
    const source = code.filter((file) => isSource(file) && !file.path.endsWith("/errors.ts"));
    const tests = code.filter((file) => isTest(file) && !file.path.startsWith("scheduler/test/tidy/"));
    return Object.keys(codes).flatMap((name) => {
      const quoted = new RegExp(`["'\`]${name}["'\`]`);
      const wrong: string[] = [];
      if (!source.some((file) => quoted.test(file.text)))
        wrong.push(`scheduler/src/base/errors.ts:1 ${name}: never thrown`);
      if (!tests.some((file) => quoted.test(file.text)))
        wrong.push(`scheduler/src/base/errors.ts:1 ${name}: no test names it`);
      return wrong;
    });
  };

/** Rule: the change log has lines for the unreleased changes or for this version. */
export const changesTold: Rule = (files) => {
  const log = textOf(files, "CHANGELOG.md");
  if (log === undefined) return ["CHANGELOG.md:1 is missing"];
  const section = /^## (?:\[?Unreleased\]?|0\.1\.0).*\n+(?:(?!## ).*\n+)*?- \S/im;
  return section.test(log) ? [] : ["CHANGELOG.md:1 has no section Unreleased or 0.1.0 with a line in it"];
};

/** Rule: a page mentions each bench. */
export const benchesNamed: Rule = (files) => {
  const pages = files.filter(({ path }) => path === "README.md" || /^(?:docs|bench)\/.*\.md$/.test(path));
  return files.flatMap(({ path }) => {
    const question = /^bench\/([^/]+)\.ts$/.exec(path)?.[1];
    if (question === undefined) return [];
    const named = new RegExp(`(?:bench -- |bench/|\`)${question}\\b`);
    return pages.some((page) => named.test(page.text)) ? [] : [`${path}:1 is named neither in README.md nor in docs/`];
  });
};
