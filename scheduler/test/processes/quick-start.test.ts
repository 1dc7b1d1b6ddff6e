import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { pack, packages, root } from "../support/packed.ts";
import { postgres } from "../support/servers.ts";
import { until } from "../support/store-stage.ts";

/** Splits a page into its code blocks: the language, the mark (file name), and the text of each. */
const blocksOf = (page: string) =>
  [...readFileSync(join(root, page), "utf8").matchAll(/^```(\w+) ?(\S*)\n(.*?)^```$/gms)].map(
    ([, language = "", mark = "", text = ""]) => ({ language, mark, text }),
  );
const blocks = blocksOf("docs/guide/quick-start.md");
const typed = blocks.filter(({ language }) => language === "sh");

/** An empty folder in which the test follows the page like a new user, who has only Node.js. */
const folder = mkdtempSync(join(tmpdir(), "carillon-quick-start-"));
const database = `quick_start_${process.pid}`;
const running: ChildProcess[] = [];
let admin: pg.Client;

/** A running command and its output so far. */
interface Terminal {
  child: ChildProcess;
  shown: () => string;
}

function type(text: string, env: Record<string, string> = {}): Terminal {
  const { DATABASE_URL: _, CARILLON_STORE: __, ...mine } = process.env;
  const child = spawn("sh", ["-e", "-c", text], {
    cwd: folder,
    // Uses a separate process group, as a terminal does, so that Ctrl-C reaches all processes of the command.
    detached: true,
    env: { ...mine, npm_config_prefer_offline: "true", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  running.push(child);
  let shown = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (data) => {
      shown += data;
    });
  return { child, shown: () => shown };
}

async function done(text: string, env: Record<string, string> = {}): Promise<string> {
  const { child, shown } = type(text, env);
  const [code] = await once(child, "close");
  expect(code, shown()).toBe(0);
  return shown();
}

const shows = ({ shown, child }: Terminal, what: RegExp) =>
  until(`a terminal to show ${what}`, () => {
    if (child.exitCode !== null && !what.test(shown())) throw new Error(`it ended: ${shown()}`);
    return what.test(shown());
  });

/** Returns a free port, because other tests that run at the same time also start servers. */
async function freePort(): Promise<number> {
  const server = new URL("scripts/servers/server.mjs", `file://${root}`).href;
  return ((await import(server)) as { freePort(): Promise<number> }).freePort();
}

const signal = ({ pid }: ChildProcess, name: NodeJS.Signals) => process.kill(-(pid as number), name);

async function interrupt({ child }: Terminal): Promise<void> {
  const closed = once(child, "close");
  signal(child, "SIGINT");
  await closed;
}

beforeAll(async () => {
  // If the test runs as root, the embedded server runs as another user, who needs access to the folder.
  chmodSync(folder, 0o755);
  for (const { language, mark, text } of blocks) if (language !== "sh") writeFileSync(join(folder, mark), text);
  admin = new pg.Client(postgres().url);
  await admin.connect();
  await admin.query(`create database ${database}`);
});
afterAll(async () => {
  for (const child of running) if (child.exitCode === null && child.signalCode === null) signal(child, "SIGKILL");
  await admin.query(`drop database if exists ${database} with (force)`);
  await admin.end();
  rmSync(folder, { recursive: true });
});

it("works as written, from an empty folder to two processes of which one is killed", async () => {
  const [install, dev, enqueue, one, two, look, ...more] = typed.map(({ text }) => text);
  expect(more).toEqual([]);
  const files = packages.map((workspace) => pack(workspace, folder)).join(" ");
  expect(install).toContain("npm install carillon @carillon/embedded\n");
  // The packages are not published yet, so the test installs packages that it has packed from the repository.
  await done((install as string).replace("npm install carillon @carillon/embedded", `npm install ${files}`));

  const port = await freePort();
  const first = type((dev as string).replace("7373", `${port}`));
  await shows(first, /heartbeat .*✓/);
  await shows(first, /flaky .*the bank does not answer/);
  await shows(first, /flaky .*✓/);
  const page = await fetch(`http://127.0.0.1:${port}/`, { headers: { accept: "text/html" } });
  expect(await page.text()).toContain("<title>Carillon");
  const signIn = await fetch(`http://127.0.0.1:${port}/v1/sign-in`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ name: "admin", password: "three herons at dawn" }),
  });
  expect(signIn.status).toBe(200);
  const enqueued = await done(enqueue as string);
  expect(enqueued).toMatch(/run \d+ is due in 10 seconds/);
  expect(enqueued).toMatch(/greet/);
  await shows(first, /greet .*✓/);
  await interrupt(first);

  const url = new URL(postgres().url);
  url.pathname = `/${database}`;
  const env = { DATABASE_URL: String(url) };
  const terminals = [type(one as string, env), type(two as string, env)] as const;
  for (const terminal of terminals) await shows(terminal, /heartbeat .*✓|node (?:one|two)/);
  const own = new pg.Client(env.DATABASE_URL);
  await own.connect();
  try {
    const nodes = async () =>
      (await own.query("select node, pid from carillon.session where ended_ms is null and node in ('one', 'two')"))
        .rows;
    await until("both to have joined", async () => (await nodes()).length === 2);
    const victim = (await nodes()).find(({ node }) => node === "one") as { pid: number };
    process.kill(victim.pid, "SIGKILL");
    const killedMs = Date.now();
    const slots = async (): Promise<number[]> =>
      (
        await own.query(
          "select h.slot_ms::float8 as slot from carillon.run_history h join carillon.task t on t.id = h.task_id where t.name = 'heartbeat' and h.outcome = 0 order by 1",
        )
      ).rows.map(({ slot }) => slot);
    await until("slots of after the kill to have run", async () => {
      const after = (await slots()).filter((slot) => slot > killedMs);
      const gaps = (await slots()).filter((slot, at, all) => at > 0 && slot - (all[at - 1] as number) !== 2_000);
      return after.length >= 3 && gaps.length === 0;
    });
    expect(new Set(await slots()).size).toBe((await slots()).length);
  } finally {
    await own.end();
  }
  const looked = await done(look as string, env);
  expect(looked).toMatch(/heartbeat/);
  expect(looked).toMatch(/two/);
  await interrupt(terminals[1]);
});

it("the README begins with the quick start's install line, and its task compiles, is shown and runs as described", async () => {
  const [install, tasks, dev, look, ...more] = blocksOf("README.md");
  expect(typed[0]?.text).toContain(install?.text);
  expect([tasks?.mark, more.map(({ text }) => text)]).toEqual([
    "tasks.ts",
    [expect.stringMatching(/^npm run demo .*\nnpm test .*\n$/)],
  ]);
  writeFileSync(join(folder, "tasks.ts"), tasks?.text ?? "");
  const typeRoots = join(root, "node_modules/@types");
  const options = `--noEmit --strict --skipLibCheck --target es2023 --module nodenext --types node --typeRoots ${typeRoots}`;
  await done(`"${process.execPath}" "${join(root, "node_modules/typescript/bin/tsc")}" ${options} tasks.ts`);
  const url = new URL(postgres().url);
  url.pathname = `/${database}`;
  const env = { DATABASE_URL: String(url) };
  const terminal = type((dev?.text ?? "").replace("7373", `${await freePort()}`), env);
  await shows(terminal, /settle +at 18:00 on weekdays, Europe\/Berlin/);
  const shown = await done(look?.text ?? "", env);
  expect(shown).toMatch(/^settle {2}at 18:00 on weekdays, Europe\/Berlin\n/);
  expect(shown).toMatch(/settle +run \d+ +✓/);
  expect(shown).toMatch(/"settled":"on demand, fence \d+"/);
  await shows(terminal, /settle +run \d+ +✓/);
  await interrupt(terminal);
});
