import { spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { checkPackage, createPackageFromTarballData } from "@arethetypeswrong/core";
import { publint } from "publint";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { manifestOf, pack, packages, root } from "../support/packed.ts";

const mostBytes = 1_500_000;
/** Limits for carillon with all its dependencies, installed without the embedded PostgreSQL. */
const mostPackages = 60;
const mostInstalledBytes = 25_000_000;
/** Optional peer dependencies, which a NestJS application has installed itself. */
const nest = ["@nestjs/common", "@nestjs/core"];
const names = ["carillon", "@carillon/zookeeper", "@carillon/embedded", "@carillon/console"];

interface Bom {
  bomFormat: string;
  metadata: { component: { name: string; version: string } };
  components: { name: string; version: string; purl: string; hashes?: object[] }[];
}

/** Tests the packages as they are published: packed, and unpacked beside their dependencies in an otherwise empty folder. */
describe("the published packages", () => {
  const folder = mkdtempSync(join(tmpdir(), "carillon-packages-"));
  const modules = join(folder, "node_modules");
  /** The path of each package's packed file, by the package's name. */
  const files = new Map<string, string>();

  const run = (program: string, args: string[]) => {
    const { status, stdout, stderr } = spawnSync(program, args, { cwd: folder, encoding: "utf8" });
    expect([args, status, stderr]).toEqual([args, 0, ""]);
    return stdout;
  };

  /** Links further packages into the folder. */
  const bring = (...others: string[]) => {
    for (const name of others)
      if (!existsSync(join(modules, name))) {
        mkdirSync(dirname(join(modules, name)), { recursive: true });
        symlinkSync(join(root, "node_modules", name), join(modules, name));
      }
  };

  beforeAll(() => {
    for (const workspace of packages) {
      const { name, dependencies = {} } = manifestOf(join(root, workspace));
      const file = pack(workspace, folder);
      files.set(name, file);
      const target = join(modules, name);
      mkdirSync(target, { recursive: true });
      run("tar", ["-xzf", file, "-C", target, "--strip-components=1"]);
      for (const other of Object.keys(dependencies)) {
        if (other.startsWith("@carillon/")) continue;
        const places = [join(root, workspace, "node_modules", other), join(root, "node_modules", other)];
        const link = join(modules, other);
        mkdirSync(dirname(link), { recursive: true });
        if (!existsSync(link)) symlinkSync(places.find(existsSync) as string, link);
      }
    }
    bring("@types/node", "@types/pg", "typescript", "undici-types");
    writeFileSync(join(folder, "package.json"), '{ "name": "app", "type": "module" }');
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  it.each(names)("%s contains what users need, and no tests, maps or sources", (name) => {
    const paths = readdirSync(join(modules, name), { recursive: true, encoding: "utf8" });
    expect(paths.filter((path) => /\.test\.|\.map$|(?<!\.d)\.ts$|tsbuildinfo|(?:^|\/)\./.test(path))).toEqual([]);
    expect(paths).toEqual(expect.arrayContaining(["package.json", "README.md", "LICENSE"]));
    expect(statSync(files.get(name) as string).size).toBeLessThanOrEqual(mostBytes);
    const { keywords, license, exports, bin = {} } = manifestOf(join(modules, name));
    expect([license, (keywords ?? []).length > 0]).toEqual(["Apache-2.0", true]);
    const named = Object.values(exports).flatMap((one) => (typeof one === "string" ? one : Object.values(one)));
    for (const path of [...named, ...Object.values(bin)])
      expect([path, existsSync(join(modules, name, path))]).toEqual([path, true]);
  });

  it.each(names)("publint has no remarks on %s", async (name) => {
    const { messages } = await publint({ pkgDir: join(modules, name), pack: false });
    expect(messages).toEqual([]);
  });

  it.each(names.filter((name) => name !== "@carillon/console"))("the types of %s match its code", async (name) => {
    const found = await checkPackage(createPackageFromTarballData(readFileSync(files.get(name) as string)));
    if (!found.types) throw new Error(`${name} has no types`);
    // Two reports are accepted, because the package has only ES modules: `node10` finds no types, and CommonJS can import it only as
    // Node.js allows.
    const meant = ["NoResolution node10", "CJSResolvesToESM node16-cjs"];
    const problems = found.problems.map((one) => `${one.kind} ${"resolutionKind" in one ? one.resolutionKind : ""}`);
    expect(problems.filter((problem) => !meant.includes(problem))).toEqual([]);
  });

  it("carillon has few dependencies of limited size", () => {
    const brought = broughtBy("carillon", modules);
    const bytes = brought.reduce((sum, folder) => sum + bytesOf(folder), 0);
    expect(brought.length, brought.join(", ")).toBeLessThanOrEqual(mostPackages);
    expect(bytes).toBeLessThanOrEqual(mostInstalledBytes);
  });

  it("bundled packages are listed with their licenses", () => {
    const { devDependencies = {} } = manifestOf(join(modules, "carillon"));
    const told = readFileSync(join(modules, "carillon/lib/third-party.txt"), "utf8");
    for (const name of Object.keys(devDependencies)) expect(told).toMatch(new RegExp(`^${name} \\d`, "m"));
    expect(readFileSync(join(modules, "@carillon/console/dist/site/third-party.txt"), "utf8")).toMatch(/^react \d/m);
  });

  it("npm run sbom lists each package's dependencies and bundled packages", () => {
    const script = join(root, "scripts/sbom.mjs");
    const paths = run(process.execPath, [script, folder]).trim().split("\n");
    expect(paths).toHaveLength(names.length);
    for (const path of paths) {
      const { bomFormat, metadata, components } = JSON.parse(readFileSync(path, "utf8")) as Bom;
      const { name, version } = metadata.component;
      const { dependencies = {}, version: own } = manifestOf(join(modules, name));
      expect([bomFormat, names.includes(name), version]).toEqual(["CycloneDX", true, own]);
      const named = new Map(components.map((one) => [`${one.name} ${one.version}`, one]));
      const builtIn = ["lib/third-party.txt", "dist/site/third-party.txt"].flatMap((file) => {
        const text = existsSync(join(modules, name, file)) ? readFileSync(join(modules, name, file), "utf8") : "";
        return [...text.matchAll(/^(\S+ \d+\.\d+\.\d\S*) \(/gm)].map(([, one = ""]) => one);
      });
      expect(builtIn.length > 0, name).toBe(/^carillon$|console$/.test(name));
      for (const one of builtIn) expect([name, one, named.has(one)]).toEqual([name, one, true]);
      const all = components.map((one) => one.name);
      expect(all).toEqual(expect.arrayContaining(Object.keys(dependencies)));
      for (const [one, { purl, hashes }] of named)
        expect([one, purl, (hashes ?? []).length > 0 || one.startsWith("@carillon/")]).toEqual([
          one,
          expect.stringMatching(/^pkg:npm\//),
          true,
        ]);
    }
  });

  it("plain Node can import and require each entry; only carillon/nest needs Nest", () => {
    const entries = names.flatMap((name) => entriesOf(join(modules, name)));
    expect(entries).toContain("carillon/nest");
    const load = (entry: string) => {
      run(process.execPath, ["--input-type=module", "-e", `await import(${JSON.stringify(entry)})`]);
      run(process.execPath, ["--no-warnings", "--input-type=commonjs", "-e", `require(${JSON.stringify(entry)})`]);
    };
    for (const entry of entries.filter((one) => one !== "carillon/nest")) load(entry);
    bring(...nest);
    load("carillon/nest");
  });

  it("importing carillon loads no dependency except the PostgreSQL client", () => {
    const seen = new Set<string>();
    const packagesOf = (file: string): string[] => {
      if (seen.has(file)) return [];
      seen.add(file);
      const specifiers = readFileSync(file, "utf8").matchAll(/^(?:import|export) (?:[^"]* from )?"([^"]+)";$/gm);
      return [...specifiers].flatMap(([, to = ""]) =>
        to.startsWith(".") ? packagesOf(join(dirname(file), to)) : to.startsWith("node:") ? [] : [to],
      );
    };
    const loaded = packagesOf(join(modules, "carillon/lib/index.js"));
    expect(seen.size, "the files of carillon itself").toBeGreaterThan(10);
    expect([...new Set(loaded)]).toEqual(["pg"]);
  });

  /** Compiles a file of the application. @returns the compiler's exit status and output */
  const compiled = (file: string, ...options: string[]) => {
    const tsc = join(root, "node_modules/typescript/bin/tsc");
    const args = [tsc, "--noEmit", "--strict", "--target", "es2023", "--types", "node", ...options, file];
    return spawnSync(process.execPath, args, { cwd: folder, encoding: "utf8" });
  };

  it.each(["nodenext", "bundler"])("each entry's types are complete, with module resolution %s", (moduleResolution) => {
    bring(...nest);
    const entries = names.flatMap((name) => entriesOf(join(modules, name)));
    const program = entries.map((entry, n) => `import * as e${n} from "${entry}";\nvoid e${n};\n`).join("");
    writeFileSync(join(folder, "app.ts"), program);
    const module = moduleResolution === "bundler" ? "esnext" : moduleResolution;
    const options = ["--lib", "es2023,esnext.disposable", "--module", module, "--moduleResolution", moduleResolution];
    const { stdout } = compiled("app.ts", ...options, "--listFilesOnly");
    expect(stdout, "what the compiler read").toContain("node_modules/carillon/dist/index.d.ts");
    const checked = compiled("app.ts", ...options);
    // Errors in the types of packages of other authors are ignored.
    const isOwn = (line: string) => /^(?:app\.ts|node_modules\/(?:carillon|@carillon)\/)/.test(line);
    expect(checked.stdout.split("\n").filter(isOwn)).toEqual([]);
  });

  it("an application's task registry types payloads and results by task name", () => {
    writeFileSync(
      join(folder, "registry.ts"),
      `import { carillon, taskType } from "carillon";
const settle = taskType<{ invoice: string }, { paid: boolean }>("settle");
declare module "carillon" { interface TaskRegistry { settle: typeof settle } }
const tower = carillon({ store: "postgres://127.0.0.1/none" });
const handle = await tower.enqueue("settle", { invoice: "7" }, { in: "1s" });
export const paid: boolean = (await handle.result()).paid;
// @ts-expect-error: no task has this name
await tower.enqueue("setle", { invoice: "7" });
// @ts-expect-error: an invoice is a text
await tower.enqueue("settle", { invoice: 7 });
`,
    );
    const checked = compiled("registry.ts", "--module", "nodenext", "--skipLibCheck");
    expect(checked.stdout).toBe("");
  });

  it("the command runs from the package", () => {
    const main = join(modules, "carillon/lib/cli.js");
    expect(run(process.execPath, [main, "--help"])).toContain("Usage: carillon");
  });

  it("carillon mcp names the package it needs if that is not installed", () => {
    const main = join(modules, "carillon/lib/cli.js");
    const env = { ...process.env, CARILLON_TOKEN: "none" };
    const given = { cwd: folder, encoding: "utf8" as const, env };
    const { status, stdout, stderr } = spawnSync(
      process.execPath,
      [main, "mcp", "--server", "https://127.0.0.1:1"],
      given,
    );
    expect({ status, stdout }).toEqual({ status: 1, stdout: "" });
    expect(stderr).toContain("PACKAGE_NEEDED");
    expect(stderr).toContain("npm install @modelcontextprotocol/server");
  });
});

/** Returns the import paths that the package exports. */
function entriesOf(path: string): string[] {
  const { name, exports } = manifestOf(path);
  const entries = Object.keys(exports).filter((entry) => typeof exports[entry] !== "string");
  return entries.map((entry) => (entry === "." ? name : `${name}${entry.slice(1)}`));
}

/**
 * Returns the folders of all packages that npm would install for the package `name`, including its own.
 * @param modules the folder in which the packed packages are unpacked
 */
function broughtBy(name: string, modules: string): string[] {
  const places = new Set<string>();
  const bring = (folder: string) => {
    if (places.has(folder)) return;
    places.add(folder);
    for (const other of Object.keys(manifestOf(folder).dependencies ?? {})) {
      const own = other.startsWith("@carillon/") ? modules : undefined;
      const from = [own, ...(createRequire(join(folder, "package.json")).resolve.paths(other) ?? [])];
      const place = from.map((path) => path && join(path, other)).find((path) => path && existsSync(path));
      if (!place) throw new Error(`${other}, which ${folder} needs, is not installed`);
      bring(realpathSync(place));
    }
  };
  bring(join(modules, name));
  return [...places];
}

/** Returns the size in bytes of a package's own files, as npm reports it; packages nested within it are not counted. */
function bytesOf(folder: string): number {
  let bytes = 0;
  for (const entry of readdirSync(folder, { withFileTypes: true }))
    if (entry.isFile()) bytes += statSync(join(folder, entry.name)).size;
    else if (entry.isDirectory() && entry.name !== "node_modules") bytes += bytesOf(join(folder, entry.name));
  return bytes;
}
