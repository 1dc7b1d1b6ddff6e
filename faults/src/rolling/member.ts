/**
 * A process of the old or the new version: a node that schedules, serves HTTP, executes and enqueues runs, or a remote worker. It
 * imports its version's build from a folder, and appends each action as one line to a file that all processes share.
 */
import { appendFileSync, existsSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import type { Run } from "carillon";
import { childrenEach, everyMs } from "./load.ts";
import type { Seen, Version } from "./seen.ts";

export interface MemberOrder {
  /** The folder with the compiled scheduler of this process's version. */
  build: string;
  by: Version;
  name: string;
  file: string;
  role: "node" | "worker";
  url: string;
  schema: string;
  /** For a node: the address on which it listens. For a worker: the nodes' addresses. */
  listen: string[];
  key: string;
}

const { build, by, name, file, role, url, schema, listen, key } = JSON.parse(process.argv[2] ?? "{}") as MemberOrder;
type Unstamped<One> = One extends Seen ? Omit<One, "atMs" | "by"> : never;
/** Appends a line in one write, so that lines of several processes do not mix and a kill right afterwards does not lose the line. */
const write = (what: Unstamped<Seen>) => appendFileSync(file, `${JSON.stringify({ ...what, atMs: Date.now(), by })}\n`);
const said = (level: "warn" | "error") => (fields: object, message: string) =>
  write({ kind: "said", node: name, level, message, fields });
const log = { debug: () => undefined, info: () => undefined, warn: said("warn"), error: said("error") };

const load = (module: string) => import(pathToFileURL(`${build}/${module}`).href);

function runs(task: string, tookMs: number, then: (run: Run) => unknown = () => undefined) {
  return async (run: Run) => {
    const slotMs = run.slot?.getTime() ?? null;
    write({ kind: "began", node: name, task, run: run.id, attempt: run.attempt, slotMs });
    await pause(tookMs);
    const answer = await then(run);
    write({ kind: "ended", task, run: run.id, ...(typeof answer === "number" ? { inputs: answer } : {}) });
    return answer;
  };
}

async function beNode(): Promise<void> {
  const { carillon, every } = (await load("index.js")) as typeof import("carillon");
  const schedule = (task: keyof typeof everyMs) => ({
    schedule: every(everyMs[task]),
    misfire: "all" as const,
    retry: { attempts: 3 },
  });
  const tower = carillon({
    store: url,
    schema,
    name,
    log,
    listen: listen[0] as string,
    groups: ["default"],
    sessionTimeout: 3_000,
    drain: "20s",
    // A node of the old version may create the schema; a node of the new version does not, because `carillon migrate` has migrated
    // it.
    ...(by === "new" ? { migrate: false } : {}),
  });
  tower.task("beat", schedule("beat"), runs("beat", 30));
  tower.task("serial", { ...schedule("serial"), overlap: "queue" }, runs("serial", 60));
  const children = Array.from({ length: childrenEach }, (_, n) => ({ task: "leaf", payload: n, key: `leaf-${n}` }));
  tower.task(
    "fork",
    schedule("fork"),
    runs("fork", 1, (run) => run.fanOut(children, { join: "joined" })),
  );
  tower.task("leaf", {}, runs("leaf", 10));
  tower.task(
    "joined",
    {},
    runs("joined", 1, async (run) => (await run.inputs()).length),
  );
  tower.task("work", {}, runs("work", 20));
  tower.task("far", { ...schedule("far"), group: "far" }, runs("far", 20));
  await tower.start();
  process.stdout.write("started\n");
  let stopping = false;
  // Any input (the harness sends "quiet") ends the enqueuing. The other work of the process stops on SIGTERM, as in a deployment.
  process.stdin.once("data", () => {
    stopping = true;
  });
  (process.stdin as unknown as { unref(): void }).unref();
  while (!stopping) {
    try {
      const { runId } = await tower.enqueue("work");
      write({ kind: "enqueued", run: runId });
    } catch (error) {
      if ((error as { code?: string }).code === "STOPPED") return;
      throw error;
    }
    await pause(15);
  }
}

async function beWorker(): Promise<void> {
  // Older builds have the module in their top folder.
  const module = existsSync(`${build}/library`) ? "library/remote-worker.js" : "remote-worker.js";
  const { worker } = (await load(module)) as typeof import("carillon/worker");
  const far = worker({ server: listen.map((one) => `http://${one}`), key, name, groups: ["far"], log, drain: "20s" });
  far.task("far", runs("far", 20) as never);
  await far.start();
  process.stdout.write("started\n");
}

await (role === "node" ? beNode() : beWorker());
