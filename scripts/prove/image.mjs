/**
 * `npm run prove -- image`: executes deploy/Dockerfile step by step in separate folders with this machine's Node.js, for machines without a
 * container runtime. Then it starts a PostgreSQL and, as an unprivileged user, runs the image's programs: `migrate`, and `server`, whose
 * probes and console it requests. It tests neither the base image nor Docker.
 */
import { spawn, spawnSync } from "node:child_process";
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fail, requireNode, root, say, Trouble } from "../ready.mjs";
import { freePort } from "../servers/server.mjs";
import { startServers } from "../servers.mjs";
import { showsUsage } from "../usage.mjs";

const withoutRights = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};

/** Returns the steps of a Dockerfile, each with its instruction (`word`) and its arguments (`rest`). @param {string} text */
const stepsOf = (text) =>
  text
    .replace(/^\s*#.*\n/gm, "")
    .replace(/\\\n/g, " ")
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => {
      const [, word = "", rest = ""] = /^(\w+)\s+(.*)$/.exec(line) ?? [];
      return { word, rest };
    });

/** True if the path is left out of the build, as .dockerignore leaves it out of Docker's. @param {string} path */
const isLeftOut = (path) =>
  ["node_modules", "dist", ".carillon", ".git"].includes(basename(path)) || path.endsWith(".tsbuildinfo");

/** Builds all stages. @param {string} top @returns {{ folder: string, entry: string[] }} folder and entry point of the last stage */
function build(top) {
  /** @type {Map<string, string>} */
  const stages = new Map();
  let [stage, within] = ["", "/"];
  /** @type {string[]} */
  let entry = [];
  for (const { word, rest } of stepsOf(readFileSync(join(root, "deploy/Dockerfile"), "utf8"))) {
    say(`${word} ${rest}`);
    const here = join(stage, within);
    if (word === "FROM") {
      const [, name = `stage-${stages.size}`] = / AS (\S+)$/.exec(rest) ?? [];
      stage = join(top, name);
      within = "/";
      stages.set(name, stage);
      mkdirSync(stage);
    } else if (word === "WORKDIR") {
      within = rest;
      mkdirSync(join(stage, within), { recursive: true });
    } else if (word === "COPY") {
      const [, other] = /^--from=(\S+)/.exec(rest) ?? [];
      const paths = rest.replace(/^--from=\S+\s+/, "").split(/\s+/);
      const target = paths.pop() ?? "";
      for (const path of paths) {
        const source = other === undefined ? join(root, path) : join(stages.get(other) ?? "", path);
        if (!existsSync(source)) throw new Trouble(`there is no ${path} to copy`);
        const to =
          target.endsWith("/") && paths.length >= 1 && other === undefined
            ? join(here, target, path)
            : join(here, target);
        const filter = (/** @type {string} */ one) => other !== undefined || !isLeftOut(one);
        cpSync(source, to, { recursive: true, verbatimSymlinks: true, filter });
      }
    } else if (word === "RUN") {
      const done = spawnSync("sh", ["-ec", rest], { cwd: here, stdio: ["ignore", 2, 2] });
      if (done.status !== 0) throw new Trouble(`it failed, see above: ${rest}`);
    } else if (word === "ENTRYPOINT") entry = JSON.parse(rest);
    else if (!["ENV", "USER", "CMD"].includes(word)) throw new Trouble(`${word} is not known here`);
  }
  return { folder: stage, entry };
}

/** @param {string} url @param {number} patienceMs @returns {Promise<Response>} */
async function answered(url, patienceMs) {
  const deadline = performance.now() + patienceMs;
  for (;;) {
    try {
      return await fetch(url, { headers: { accept: "text/html" } });
    } catch (error) {
      if (performance.now() > deadline) throw error;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}

async function main() {
  if (showsUsage("scripts/prove/image.mjs")) return;
  if (process.argv.length > 2)
    throw new Trouble(`npm run prove -- image takes no arguments, not ${process.argv.slice(2).join(" ")}.`);
  requireNode();
  const top = mkdtempSync(join(tmpdir(), "carillon-image-"));
  const servers = await startServers(["postgres"]);
  try {
    chmodSync(top, 0o755);
    const { folder, entry } = build(top);
    const [, program = ""] = entry;
    const store = servers.env.CARILLON_TEST_POSTGRES_URL ?? "";
    const env = { PATH: process.env.PATH, NODE_ENV: "production", CARILLON_STORE: store };
    const schema = ["--schema", "image"];
    const run = [join(folder, program)];
    const migrated = spawnSync(process.execPath, [...run, "migrate", ...schema], {
      cwd: folder,
      env,
      stdio: ["ignore", 2, 2],
      ...withoutRights,
    });
    if (migrated.status !== 0) throw new Trouble("`migrate` failed, see above");
    const port = await freePort();
    const args = ["server", "--listen", `127.0.0.1:${port}`, "--behind-proxy", "--no-migrate", ...schema];
    const server = spawn(process.execPath, [...run, ...args], {
      cwd: folder,
      env,
      stdio: ["ignore", 2, 2],
      ...withoutRights,
    });
    const gone = new Promise((resolve) => server.once("exit", (code, signal) => resolve(signal ?? code)));
    try {
      for (const path of ["/livez", "/readyz"]) {
        const { status } = await answered(`http://127.0.0.1:${port}${path}`, 30_000);
        if (status !== 200) throw new Trouble(`${path} answered ${status}`);
      }
      const page = await (await answered(`http://127.0.0.1:${port}/`, 1_000)).text();
      if (!page.includes("<script")) throw new Trouble("the server has no console");
    } finally {
      server.kill("SIGTERM");
      say(`the server ended by ${await gone}`);
    }
    say("✓ the image's steps make a server that answers, with its console");
  } finally {
    await servers.stop();
    rmSync(top, { recursive: true, force: true });
  }
}

await main().catch(fail);
