/**
 * Checks each code block of the guide as far as its language allows: it must compile or parse, or use only existing commands and importers.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Command } from "commander";
import { afterAll, expect, it } from "vitest";
import { parse } from "yaml";
import type { Findings, ImportOptions, SourceFile } from "../../src/importers/findings.ts";
import { importKubernetes } from "../../src/importers/kubernetes.ts";
import { importQuartz } from "../../src/importers/quartz.ts";
import { fromXxl } from "../../src/importers/xxl-job.ts";
import { leaves } from "../cli/leaves.ts";
import { told, utc } from "../support/imports.ts";
import { root } from "../support/packed.ts";

const guide = join(root, "docs/guide");
/** The code blocks of the guide; `mark` is the block's file name. The quick start is a terminal session and has its own test. */
const blocks = readdirSync(guide)
  .filter((page) => page !== "quick-start.md")
  .flatMap((page) =>
    [...readFileSync(join(guide, page), "utf8").matchAll(/^```(\S*) ?(\S*)\n(.*?)^```$/gms)].map(
      ([, language = "", mark = "", text = ""]) => ({ page, language, mark, text }),
    ),
  );
const of = (...languages: string[]) => blocks.filter(({ language }) => languages.includes(language));

const folder = mkdtempSync(join(tmpdir(), "carillon-guide-"));
afterAll(() => rmSync(folder, { recursive: true }));

it("has code blocks only in languages that are checked here", () => {
  expect(blocks.length).toBeGreaterThan(40);
  const checked = ["ts", "js", "sh", "yaml", "json", "xml", "python"];
  expect(blocks.filter(({ language }) => !checked.includes(language))).toEqual([]);
});

it("has TypeScript and JavaScript that compiles in strict mode, each page as an application's files", () => {
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
  for (const { page, mark, text } of of("ts", "js")) {
    const application = join(folder, page.replace(/\.md$/, ""));
    mkdirSync(application, { recursive: true });
    expect([page, mark]).toEqual([page, expect.stringMatching(/\.m?[jt]s$/)]);
    expect(text, `${page}: the block shows its file's name`).toMatch(/^\/\/ \S+\n/);
    expect(text.slice(3, text.indexOf("\n"))).toBe(mark);
    writeFileSync(join(application, mark), text, { flag: "wx" }); // fails if two blocks of a page have the same name
  }
  writeFileSync(join(folder, "package.json"), '{ "name": "guide", "type": "module" }');
  const strict = {
    strict: true,
    noUnusedLocals: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
  };
  const compilerOptions = {
    ...strict,
    target: "es2023",
    module: "nodenext",
    noEmit: true,
    // Some blocks show code for other schedulers in JavaScript; their syntax is checked.
    allowJs: true,
    skipLibCheck: true,
    allowImportingTsExtensions: true,
    types: ["node"],
    // Applications of NestJS are compiled with these options.
    experimentalDecorators: true,
    emitDecoratorMetadata: true,
  };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["*/*"] }));
  const compiler = [join(root, "node_modules/typescript/bin/tsc"), "--project", folder, "--listFiles"];
  const { stdout, status } = spawnSync(process.execPath, compiler, { encoding: "utf8" });
  expect(stdout.split("\n").filter((line) => / error TS/.test(line))).toEqual([]);
  expect(status).toBe(0);
  expect(stdout).toContain("scheduler/dist/index.d.ts");
  expect(stdout.split("\n").filter((path) => path.startsWith(folder))).toHaveLength(of("ts", "js").length);
});

it("has the same code blocks in Chinese", () => {
  const textsOf = (path: string) => [...readFileSync(path, "utf8").matchAll(/^```.*?^```$/gms)].map(([text]) => text);
  const pages = readdirSync(join(root, "docs/zh/guide"));
  expect(pages).toEqual(readdirSync(guide));
  for (const page of pages)
    expect([page, textsOf(join(root, "docs/zh/guide", page))]).toEqual([page, textsOf(join(guide, page))]);
});

it("has YAML, JSON, Python and shell blocks that parse", () => {
  for (const { text } of of("yaml")) expect(parse(text, { strict: true })).toBeTypeOf("object");
  for (const { text } of of("json")) expect(JSON.parse(text)).toBeTypeOf("object");
  for (const { page, text } of of("python")) {
    const { status, stderr } = spawnSync("python3", ["-c", "import ast, sys; ast.parse(sys.stdin.read())"], {
      input: text,
      encoding: "utf8",
    });
    expect([page, status, stderr]).toEqual([page, 0, ""]);
  }
  for (const { page, text } of of("sh")) {
    const { status, stderr } = spawnSync("sh", ["-n"], { input: text, encoding: "utf8" });
    expect([page, status, stderr]).toEqual([page, 0, ""]);
  }
});

const ancestors = ({ parent }: Command): Command[] => (parent ? [parent, ...ancestors(parent)] : []);

it("uses only commands and options that the program has", () => {
  const program = leaves();
  const inBlocks = of("sh").flatMap(({ page, text }) =>
    [...text.matchAll(/(?<![\w=.-])carillon (.*)/g)].map(([, line = ""]) => ({
      page,
      line: line.replace(/ #.*/, "").trim(),
    })),
  );
  const inProse = [guide, join(root, "docs/zh/guide")].flatMap((language) =>
    readdirSync(language).flatMap((page) =>
      [...readFileSync(join(language, page), "utf8").matchAll(/`carillon ([^`]+)`/g)].map(([, line = ""]) => ({
        page,
        line,
      })),
    ),
  );
  const wrong = [...inBlocks, ...inProse].filter(({ line }) => {
    const words = line.split(/\s+/);
    const found = program
      .filter(({ name }) => name === words.slice(0, name.split(" ").length).join(" "))
      .sort((a, b) => b.name.length - a.name.length)[0];
    if (!found) return !program.some(({ name }) => name.startsWith(`${line} `)); // a command group, which is not in `program`
    const own = [found.command, ...ancestors(found.command)].flatMap(({ options }) => options);
    const options = own.flatMap(({ long, short }) => [long, short]);
    const typed = words.filter((word) => /^-{1,2}[a-z]/.test(word)).map((word) => word.split("=")[0]);
    return typed.some((option) => !options.includes(option) && option !== "--help");
  });
  expect(wrong).toEqual([]);
  expect(inBlocks.length).toBeGreaterThan(25);
});

/** Examples of files of other schedulers: the importer for each, and the task options that the guide shows beside it. */
const imported: [string, (files: readonly SourceFile[], options: ImportOptions) => Findings, object][] = [
  [
    "backup.cronjob.yaml",
    importKubernetes,
    {
      schedule: { cron: "30 2 * * *", zone: "Europe/Berlin" },
      overlap: "skip",
      timeout: "1h",
      command: { argv: ["/usr/local/bin/backup", "--keep", "7"] },
    },
  ],
  [
    "quartz.xml",
    importQuartz,
    {
      schedule: { cron: "0 15 10 ? * MON-FRI", zone: "America/New_York" },
      misfire: expect.objectContaining({ policy: "skip" }),
      slotPayload: { ledger: "eu" },
    },
  ],
  [
    "xxl-job.json",
    fromXxl,
    { overlap: "queue", retry: expect.objectContaining({ attempts: 4 }), timeout: "2h", route: "round-robin" },
  ],
];

it.each(imported)("%s is imported as the task shown beside it", (mark, from, task) => {
  const [block] = blocks.filter((one) => one.mark === mark);
  const found = from([{ path: mark, text: block?.text ?? "" }], utc);
  expect(told(found, "problem")).toEqual([]);
  expect(found.tasks.map(({ written }) => written)).toEqual([expect.objectContaining(task)]);
});
