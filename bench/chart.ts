/**
 * Makes the chart and the table of the latest figures, from the result lines that `npm run bench -- QUESTION --save` has stored.
 *
 *   npm run bench -- chart
 *
 * Reads docs/figures/*.json; writes docs/benchmarks.svg and the part of docs/explain/benchmarks.md between its begin and end markers.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { type Bar, barsAsSvg, type Panel } from "./chart/bars.ts";
import { savedFolder } from "./contest/contest.ts";
import { type Better, type Line, ratios } from "./contest/ratios.ts";
import { type Figures, rounded } from "./measure/figures.ts";

type Saved = Line & { date: string; command: string; runs: number; machine: string };

const page = new URL("../benchmarks.md", savedFolder);
const picture = new URL("../benchmarks.svg", savedFolder);
const [begin, end] = ["<!-- figures: made by `npm run bench -- chart` -->", "<!-- figures end -->"];

interface Shown {
  question: string;
  figure: string;
  title: string;
  unit: string;
  better: Better;
}

const shown: Shown[] = [
  ...figuresOf("drain", "a second", "more", {
    per_s: "100,000 trivial runs, one process",
    per_s_no_history: "the same, no history of successes",
    per_s_2_processes: "the same, two processes",
    per_s_2_processes_no_history: "two processes, no history of successes",
  }),
  ...figuresOf("enqueue", "a second", "more", { per_s: "added in batches of 2,000" }),
  ...figuresOf("latency", "ms", "less", {
    p50_ms: "add → start, one process, p50",
    p99_ms: "add → start, one process, p99",
    p50_ms_across: "add → start, two processes, p50",
    p99_ms_across: "add → start, two processes, p99",
    p50_ms_relaxed: 'add → start, one process, `durability: "relaxed"`, p50',
    p99_ms_relaxed: 'add → start, one process, `durability: "relaxed"`, p99',
    p50_ms_across_relaxed: 'add → start, two processes, `durability: "relaxed"`, p50',
    p99_ms_across_relaxed: 'add → start, two processes, `durability: "relaxed"`, p99',
  }),
  ...figuresOf("timers", "ms late", "less", {
    p50_ms: "5,000 timers over 30 s, p50",
    p99_ms: "5,000 timers over 30 s, p99",
    max_ms: "5,000 timers over 30 s, the latest",
  }),
  ...figuresOf("burst", "ms", "less", {
    last_start_ms: "10,000 due at once, last start",
    all_acked_ms: "10,000 due at once, all written",
  }),
  ...figuresOf("million", "ms late", "less", {
    p50_ms_1m: "timers beside 1,000,000 pending, p50",
    p99_ms_1m: "timers beside 1,000,000 pending, p99",
    p99_ms_10m: "timers beside 10,000,000 pending, p99",
  }),
  ...figuresOf("million", "MB", "less", { rss_mb_1m: "memory of the process, 1,000,000 pending" }),
  ...figuresOf("million", "a second", "more", { insert_per_s_1m: "adding the million" }),
  ...figuresOf("crons", "ms", "less", {
    last_start_ms: "10,000 tasks each minute, last start",
    last_start_ms_many: "100,000 tasks each minute, last start",
  }),
];
/** The figures that the chart shows; the table shows all stored figures. */
const drawn = new Set([
  "drain per_s",
  "drain per_s_2_processes",
  "enqueue per_s",
  "latency p50_ms_across",
  "timers p99_ms",
  "burst last_start_ms",
  "million p99_ms_1m",
  "crons last_start_ms",
]);

const saved = new Map<string, Saved>();
if (existsSync(savedFolder)) {
  for (const file of readdirSync(savedFolder)) {
    const read = JSON.parse(readFileSync(new URL(file, savedFolder), "utf8")) as Saved;
    saved.set(read.question, read);
  }
}
const there = shown.filter(({ question, figure }) => saved.get(question)?.carillon[figure] !== undefined);
if (there.length === 0)
  throw new Error(
    "nothing is kept in docs/figures yet: measure with `npm run bench -- QUESTION --save`, then come again",
  );

const dates = [...new Set([...saved.values()].map(({ date }) => date))].sort();
const panels = there.filter(({ question, figure }) => drawn.has(`${question} ${figure}`)).map(panelOf);
writeFileSync(
  picture,
  barsAsSvg(
    panels,
    `Medians, ${dates.join(" and ")}, each question on one machine; docs/explain/benchmarks.md says how`,
  ),
);

const text = readFileSync(page, "utf8");
const [from, until] = [text.indexOf(begin), text.indexOf(end)];
if (from < 0 || until < from) throw new Error(`docs/explain/benchmarks.md has lost its marks: ${begin} and ${end}`);
writeFileSync(page, `${text.slice(0, from + begin.length)}\n\n${tables()}\n${text.slice(until)}`);

function figuresOf(question: string, unit: string, better: Better, titles: Record<string, string>): Shown[] {
  return Object.entries(titles).map(([figure, title]) => ({ question, figure, title, unit, better }));
}

function valuesOf({ question, figure }: Shown): Bar[] {
  const { carillon, peers, limit } = saved.get(question) as Saved;
  const of = (who: string, figures: Figures): Bar[] => {
    const value = figures[figure];
    return value === undefined ? [] : [{ who, value }];
  };
  return [
    ...of("carillon", carillon),
    ...Object.entries(peers).flatMap(([who, figures]) => of(who, figures)),
    ...of("limit", limit),
  ];
}

function panelOf(one: Shown): Panel {
  const better = one.better === "more" ? "more is better" : "less is better";
  return { title: one.title, unit: one.unit, better, bars: valuesOf(one) };
}

function tables(): string {
  const peers = [...new Set([...saved.values()].flatMap(({ peers }) => Object.keys(peers)))];
  const columns = ["carillon", ...peers, "limit"];
  const rows = there.map((one) => {
    const values = new Map(valuesOf(one).map(({ who, value }) => [who, value]));
    const line = saved.get(one.question) as Saved;
    const [best] = ratios(line, { [one.figure]: one.better }).filter(({ to }) => to !== "limit");
    const cells = columns.map((who) => String(values.get(who) ?? ""));
    return [`${one.title}, ${one.unit}`, ...cells, best ? String(rounded(Number(best.times.toPrecision(3)))) : ""];
  });
  const head = ["", ...columns, "times as good as the best peer"];
  const table = [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
  const told = [...saved.values()].map(
    ({ command, date, runs, machine }) =>
      `- \`${command}\`, ${date}, ${runs === 1 ? "one run" : `medians of ${runs} runs`}; ${machine}`,
  );
  return `${table}\n\n${told.join("\n")}\n`;
}
