/**
 * Has any figure fallen behind, as measured by what does not depend on the machine?
 *
 *   npm run bench -- guard           some five minutes; fails when a ratio is a third below what is expected
 *   … --record                       writes what it finds to guard/ratios.json, as what is expected from now on
 *   … --question NAME                one of the questions
 *
 * Small sizes of drain, enqueue, latency, timers and burst, each with Carillon and the peers that came nearest, in calls of
 * their own. Compared are ratios, to the best of those peers and to the limit of bare SQL in the same call: how many times
 * as good Carillon is. The times themselves are the machine's. By hand and before a release: never in `npm test`.
 */
import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { type Better, type Line, ratios } from "./contest/ratios.ts";
import { rounded } from "./measure/figures.ts";

/** A ratio below this share of what is expected is a fall. Another machine, with another disk, has other ratios to the limit: record there. */
const leastShare = 2 / 3;
/** The source's file, not the build's. */
const expectedFile = new URL("../guard/ratios.json", import.meta.url);

interface Part {
  question: string;
  args: string[];
  compared: Record<string, Better>;
  /** Also to the limit: where that is the server's doing. A timer's lateness is only the moment's. */
  bounded?: true;
}

const parts: Part[] = [
  {
    question: "drain",
    args: ["--count", "30000", "--runs", "3", "--only", "carillon,graphile-worker"],
    bounded: true,
    compared: { per_s: "more", per_s_2_processes: "more", per_s_no_history: "more" },
  },
  {
    question: "enqueue",
    args: ["--count", "60000", "--runs", "3", "--only", "carillon,graphile-worker,pg-boss"],
    bounded: true,
    compared: { per_s: "more" },
  },
  {
    question: "latency",
    args: ["--count", "200", "--runs", "3", "--only", "carillon,bullmq"],
    compared: { p50_ms: "less", p50_ms_across: "less" },
  },
  {
    question: "timers",
    args: ["--count", "1000", "--over", "6000", "--runs", "3", "--only", "carillon,bullmq"],
    // Not the 99th percentile: of 1,000 the tenth worst is the moment's, and was 10 times as good in one call, 4 in another.
    compared: { p50_ms: "less" },
  },
  {
    question: "burst",
    args: ["--count", "5000", "--runs", "3", "--only", "carillon,graphile-worker"],
    compared: { last_start_ms: "less", all_acked_ms: "less" },
  },
];

const { values } = parseArgs({
  options: {
    record: { type: "boolean", default: false },
    question: { type: "string" },
    json: { type: "boolean", default: false },
  },
});
const chosen = parts.filter(({ question }) => values.question === undefined || values.question === question);
if (chosen.length === 0)
  throw new Error(`--question is one of ${parts.map(({ question }) => question).join(", ")}, not ${values.question}`);

const expected = JSON.parse(readFileSync(expectedFile, "utf8")) as Record<string, number>;
const found: Record<string, number> = {};
const fallen: string[] = [];
for (const part of chosen) {
  for (const { figure, to, times } of ratios(await lineOf(part), part.compared)) {
    if (to === "limit" && !part.bounded) continue;
    const name = `${part.question} ${figure} to ${to === "limit" ? "the limit" : "the best peer"}`;
    found[name] = rounded(Number(times.toPrecision(3)));
    const before = expected[name];
    const fell = before !== undefined && times < before * leastShare;
    if (fell) fallen.push(name);
    const verdict = before === undefined ? "not recorded yet" : `expected ${before}${fell ? ", FELL BY A THIRD" : ""}`;
    console.error(`${name}: ${found[name]}, ${verdict}`);
  }
}
if (values.record) {
  // Of all questions: what none of them tells any more goes.
  const others = values.question === undefined ? {} : expected;
  writeFileSync(expectedFile, `${JSON.stringify({ ...others, ...found }, null, 2)}\n`);
} else {
  const missing = Object.keys(found).filter((name) => expected[name] === undefined);
  if (missing.length > 0) console.error(`Nothing is expected of ${missing.join(", ")}: see --record.`);
  if (fallen.length + missing.length > 0) process.exitCode = 1;
}
console.log(JSON.stringify({ question: "guard", found, expected, fallen }));

/** The last line that a question prints, put in a process of its own. */
async function lineOf({ question, args }: Part): Promise<Line> {
  const program = new URL(`./${question}.js`, import.meta.url).pathname;
  const child = spawn(process.execPath, [program, ...args, "--json"], { stdio: ["ignore", "pipe", 2] });
  let text = "";
  child.stdout?.setEncoding("utf8").on("data", (part) => {
    text += part;
  });
  const exit = await new Promise((resolve, reject) => child.on("error", reject).on("close", resolve));
  if (exit !== 0) throw new Error(`${question} ended with ${exit}:\n${text}`);
  return JSON.parse(text.trim().split("\n").at(-1) ?? "") as Line;
}
