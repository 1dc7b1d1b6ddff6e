/**
 * Is any figure worse than that of an earlier revision on the same machine, in the same call?
 *
 *   npm run bench -- guard           about ten minutes; fails if a figure is a third worse than the earlier revision's
 *   … --against REVISION             the earlier revision: a commit or tag of this clone (default: `against` below)
 *   … --question NAME                one question only
 *   … --runs N                       pairs of runs per question; default 3 to 7, more for questions with unsteady figures
 *   … --json
 *
 * Small sizes of drain, enqueue, latency, timers and burst. The earlier revision is checked out and built beside this one, and the two run
 * in turn, so that a slow machine is slow for both. A figure's result is the median, over these pairs, of how many times as good this
 * revision is. Run it by hand and before a release; `npm test` does not include it.
 */
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import type { Better, Line } from "./contest/ratios.ts";
import { median, rounded } from "./measure/figures.ts";

/**
 * The earlier revision to compare with: the last of 24 November 2026. Move it forward when a later revision's figures are accepted. It must
 * be a commit of the main line.
 */
const against = "3f83896";
/** The bench fails if this revision's figure is below this share of the earlier revision's. */
const leastShare = 2 / 3;
/** The root folder of the sources; this file runs from the build's folder below it. */
const root = fileURLToPath(new URL("../..", import.meta.url));

const parts: { question: string; runs: number; args: string[]; compared: Record<string, Better> }[] = [
  {
    question: "drain",
    runs: 3,
    args: ["--count", "30000"],
    compared: { per_s: "more", per_s_2_processes: "more", per_s_no_history: "more" },
  },
  { question: "enqueue", runs: 5, args: ["--count", "60000"], compared: { per_s: "more" } },
  { question: "latency", runs: 3, args: ["--count", "200"], compared: { p50_ms: "less", p50_ms_across: "less" } },
  // For timers the median is compared, not the 99th percentile, because the tenth worst of 1,000 runs varies too much.
  { question: "timers", runs: 3, args: ["--count", "1000", "--over", "6000"], compared: { p50_ms: "less" } },
  { question: "burst", runs: 7, args: ["--count", "5000"], compared: { last_start_ms: "less", all_acked_ms: "less" } },
];

const { values } = parseArgs({
  options: {
    against: { type: "string", default: against },
    question: { type: "string" },
    runs: { type: "string" },
    json: { type: "boolean", default: false },
  },
});
const chosen = parts.filter(({ question }) => values.question === undefined || values.question === question);
if (chosen.length === 0)
  throw new Error(`--question is one of ${parts.map(({ question }) => question).join(", ")}, not ${values.question}`);
if (values.runs !== undefined && !/^[1-9]\d*$/.test(values.runs))
  throw new Error(`--runs is a whole number from 1, not ${values.runs}`);

try {
  git("rev-parse", "--quiet", "--verify", `${values.against}^{commit}`);
} catch {
  throw new Error(`--against ${values.against} is no commit of this clone: fetch its whole history, or name another`);
}

const former = mkdtempSync(join(tmpdir(), "carillon-guard-"));
const found: Record<string, { times: number; former: number; present: number }> = {};
git("worktree", "add", "--quiet", "--detach", former, values.against);
try {
  for (const { question, args, compared, runs: usual } of chosen) {
    const runs = Number(values.runs ?? usual);
    const pairs: { former: Line; present: Line }[] = [];
    for (let run = 0; run < runs; run++)
      pairs.push({ former: await lineOf(former, question, args), present: await lineOf(root, question, args) });
    for (const [figure, better] of Object.entries(compared)) {
      const of = (which: "former" | "present") => pairs.map((pair) => pair[which].carillon[figure] as number);
      const [befores, nows] = [of("former"), of("present")];
      const times = median(
        nows.map((now, at) => (better === "more" ? now / (befores[at] as number) : (befores[at] as number) / now)),
      );
      const name = `${question} ${figure}`;
      const told = { times: rounded(times), former: rounded(median(befores)), present: rounded(median(nows)) };
      found[name] = told;
      const verdict = times < leastShare ? ", FELL BY A THIRD" : "";
      console.error(
        `${name}: ${told.times} times as good as ${values.against}${verdict} (${told.former}, now ${told.present})`,
      );
    }
  }
} finally {
  git("worktree", "remove", "--force", former);
  rmSync(former, { recursive: true, force: true });
}
const fallen = Object.keys(found).filter((name) => !((found[name]?.times as number) >= leastShare));
if (fallen.length > 0) process.exitCode = 1;
console.log(JSON.stringify({ question: "guard", against: values.against, found, fallen }));

function git(...args: string[]): void {
  execFileSync("git", args, { cwd: root, stdio: ["ignore", "ignore", "inherit"] });
}

/** Runs one question in a process of its own, with the servers of this call, and returns the last line of its output. */
async function lineOf(tree: string, question: string, args: string[]): Promise<Line> {
  const program = join(tree, "scripts/bench.mjs");
  const child = spawn(process.execPath, [program, question, ...args, "--no-peers", "--runs", "1", "--json"], {
    cwd: tree,
    stdio: ["ignore", "pipe", 2],
  });
  let text = "";
  child.stdout?.setEncoding("utf8").on("data", (part) => {
    text += part;
  });
  const exit = await new Promise((resolve, reject) => child.on("error", reject).on("close", resolve));
  if (exit !== 0) throw new Error(`${question} ended with ${exit} in ${tree}:\n${text}`);
  return JSON.parse(text.trim().split("\n").at(-1) ?? "") as Line;
}
