/**
 * `npm run prove -- runtimes`: installs the packed packages in a separate folder together with tsx, esbuild, Jest, Bun, TypeScript 5.0 and
 * NestJS. Runs one task with each on a PostgreSQL that it starts, and lets TypeScript check the types of every entry point. The exit code
 * is 1 if an output is not as expected. It also measures how long `import "carillon"` takes.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ready } from "../build.mjs";
import { buildConsole } from "../console.mjs";
import { nodeOfLine } from "../node-line.mjs";
import { fail, npm, root, say, Trouble } from "../ready.mjs";
import { startServers } from "../servers.mjs";
import { showsUsage } from "../usage.mjs";

/**
 * The tools in exact versions, so that a later run has the same result. For Bun, the package with the platform's binary is
 * listed, because the package `bun` would only download that binary.
 */
const tools = [
  "esbuild@0.28.2",
  "tsx@4.23.15",
  "jest@30.5.2",
  "@swc/core@1.16.22",
  "@swc/jest@0.2.39",
  `@oven/bun-${process.platform}-${process.arch}@1.4.5`,
  "typescript@5.0.4",
  "@types/node@20.19.43",
];

const ran = /hello Ann, fence 1/;
const passed = /Tests: +1 passed/;
const withoutFile = /HANDLER_CRASHED.*not beside Carillon's code.*--packages=external/s;
const bundle = "npx esbuild --bundle --platform=node --log-level=error";
/** Defines `require` in a bundle of ES modules, because the CommonJS code of `pg` calls it. */
const banner = `--banner:js='import { createRequire as of } from "node:module"; const require = of(import.meta.url);'`;
const jest = "node_modules/.bin/jest --config";
/** Command that checks the types of every entry point; errors in the types of other packages are ignored. */
const types = "npx tsc --noEmit --strict --exactOptionalPropertyTypes --target es2022 --types node";
/**
 * Returns the trial for one version of NestJS that `carillon/nest` supports. @param {string} version @returns {[string, string, RegExp]}
 */
const nest = (version) => [
  `Nest ${version}`,
  `npm install --no-save --ignore-scripts --no-audit --no-fund --silent @nestjs/common@${version} @nestjs/core@${version} && npx tsc --strict --target es2022 --types node --module nodenext --experimentalDecorators --emitDecoratorMetadata --skipLibCheck nest.mts && node nest.mjs`,
  ran,
];
const ownErrors = `| grep -E "^(entries|main|app)\\.|^node_modules/@?carillon" || echo no errors`;

/**
 * Returns the trials: for each its name, its command and a pattern of the expected output.
 * @param {string} newest path of a Node.js of the newest line @returns {[string, string, RegExp][]}
 */
const trials = (newest) => [
  ["tsx", "npx tsx main.ts", ran],
  ["Bun", `node_modules/@oven/bun-${process.platform}-${process.arch}/bin/bun main.ts`, ran],
  [
    "esbuild, packages outside",
    `${bundle} --packages=external --format=cjs main.ts --outfile=a.cjs && node a.cjs`,
    ran,
  ],
  ["esbuild, ESM", `${bundle} --format=esm ${banner} main.ts --outfile=b.mjs && node b.mjs`, ran],
  ["esbuild, CommonJS", `${bundle} --format=cjs main.ts --outfile=c.cjs && node c.cjs`, ran],
  ["esbuild, ESM, isolated", `${bundle} --format=esm ${banner} isolated.ts --outfile=d.mjs && node d.mjs`, withoutFile],
  ["esbuild, CommonJS, isolated", `${bundle} --format=cjs isolated.ts --outfile=e.cjs && node e.cjs`, withoutFile],
  ["TypeScript 5.0, nodenext", `${types} --module nodenext entries.mts ${ownErrors}`, /^no errors\n$/],
  [
    "TypeScript 5.0, bundler",
    `${types} --module esnext --moduleResolution bundler entries.mts ${ownErrors}`,
    /^no errors\n$/,
  ],
  nest("10.4.22"),
  nest("11.2.10"),
  nest("12.5.1"),
  ["Jest, its transform over carillon", `node ${jest} transformed.json`, passed],
  ["Jest, newest Node", `${newest} --experimental-vm-modules ${jest} plain.json`, passed],
];

const swc = ["@swc/jest", { jsc: { parser: { syntax: "typescript" } }, module: { type: "commonjs" } }];
/** @type {Record<string, string>} */
const files = {
  "package.json": '{ "name": "app", "private": true }',
  "app.ts": `import { carillon } from "carillon";
interface Name { name: string }
export async function go(schema: string): Promise<string> {
  const tower = carillon({ store: process.env.DATABASE_URL as string, schema });
  const said = new Promise<string>((resolve) => {
    tower.task("hello", {}, (run, payload) => resolve(\`hello \${(payload as Name).name}, fence \${run.fence}\`));
  });
  await tower.start();
  await tower.enqueue("hello", { name: "Ann" });
  const text = await said;
  await tower.stop();
  return text;
}
`,
  "main.ts": `import { go } from "./app";
go(process.env.SCHEMA as string).then((text) => console.log(text));
`,
  "isolated.ts": `import { carillon } from "carillon";
const tower = carillon({ store: process.env.DATABASE_URL as string, schema: process.env.SCHEMA });
tower.task("hello", { isolate: "thread" }, new URL(\`file://\${process.cwd()}/handler.mjs\`));
tower.start().then(
  () => console.log("started"),
  (error) => console.log(error.code, error.message, error.hint),
).then(() => tower.stop());
`,
  "nest.mts": `import { Injectable, Module } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { type Producer, type Run, taskType } from "carillon";
import { Carillon, CarillonModule, InjectProducer, Task } from "carillon/nest";
const hello = taskType<{ name: string }, string>("hello");
@Injectable()
class Greeter {
  constructor(readonly tower: Carillon, @InjectProducer(hello) readonly hello: Producer<{ name: string }, string>) {}
  @Task(hello)
  greet(run: Run, { name }: { name: string }) {
    return \`hello \${name}, fence \${run.fence}\`;
  }
}
const store = { store: process.env.DATABASE_URL as string, schema: process.env.SCHEMA as string };
@Module({ imports: [CarillonModule.forRoot(store), CarillonModule.producers([hello])], providers: [Greeter] })
class App {}
const app = await NestFactory.createApplicationContext(App, { logger: ["error"] });
const { tower, hello: greetings } = app.get(Greeter);
if (tower !== app.get(Carillon)) throw new Error("not the Carillon of the application");
console.log(await (await greetings.enqueue({ name: "Ann" })).result({ timeout: "60s" }));
await app.close();
`,
  "entries.mts": [
    "",
    "/testing",
    "/worker",
    "/client",
    "/embedded",
    "/contract",
    "/events",
    "/access",
    "/schedule",
    "/slots",
    "/task",
  ]
    .map((entry, at) => `import * as e${at} from "carillon${entry}";\nvoid e${at};\n`)
    .join(""),
  "handler.mjs": "export default () => 1;\n",
  "app.test.ts": `import { go } from "./app";
test("runs", async () => expect(await go(process.env.SCHEMA as string)).toMatch(/^hello Ann/), 60_000);
`,
  "plain.json": JSON.stringify({ transform: { "\\.ts$": swc }, testMatch: ["**/app.test.ts"] }),
  "transformed.json": JSON.stringify({
    transform: { "\\.(ts|js)$": swc },
    transformIgnorePatterns: ["/node_modules/(?!carillon/|@carillon/)"],
    testMatch: ["**/app.test.ts"],
  }),
};

/** @param {string} folder */
function install(folder) {
  for (const workspace of ["zookeeper", "console", "scheduler"])
    if (!npm(["pack", "--ignore-scripts", "--pack-destination", folder], join(root, workspace)))
      throw new Trouble(`npm pack of ${workspace} failed, see above`);
  const packed = readdirSync(folder).map((name) => `./${name}`);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  if (!npm(["install", "--ignore-scripts", "--no-audit", "--no-fund", ...packed, ...tools], folder))
    throw new Trouble("npm could not install the tools, see above");
}

/** Returns the time that importing the module takes, in ms: the median of nine processes. @param {string} folder @param {string} name */
function importMs(folder, name) {
  const code = `const from = performance.now(); await import("${name}"); console.log(performance.now() - from);`;
  const took = Array.from({ length: 9 }, () =>
    Number(spawnSync(process.execPath, ["--input-type=module", "-e", code], { cwd: folder, encoding: "utf8" }).stdout),
  );
  return took.sort((a, b) => a - b)[4]?.toFixed(0);
}

async function main() {
  if (showsUsage("scripts/prove/runtimes.mjs")) return;
  ready();
  buildConsole();
  const { path: newest } = nodeOfLine("24");
  const folder = mkdtempSync(join(tmpdir(), "carillon-runtimes-"));
  const servers = await startServers(["postgres"]);
  try {
    install(folder);
    const [own, control] = ["carillon", "pg"].map((name) => importMs(folder, name));
    process.stdout.write(`import "carillon": ${own} ms; its largest part alone, "pg": ${control} ms\n`);
    for (const [at, [name, command, wanted]] of trials(newest).entries()) {
      const env = { ...process.env, DATABASE_URL: servers.env.CARILLON_TEST_POSTGRES_URL, SCHEMA: `runtimes_${at}` };
      const { stdout, stderr } = spawnSync("sh", ["-c", command], {
        cwd: folder,
        encoding: "utf8",
        env,
        timeout: 120_000,
      });
      const shown = `${stdout}${stderr}`;
      const right = wanted.test(shown);
      process.stdout.write(`${right ? "✓" : "✗"} ${name}: ${command}\n`);
      if (!right) {
        say(shown);
        process.exitCode = 1;
      }
    }
  } finally {
    await servers.stop();
    rmSync(folder, { recursive: true });
  }
}

await main().catch(fail);
