import { availableParallelism, cpus, totalmem } from "node:os";
import { type Figures, median, rounded } from "./figures.ts";

/** A target for a figure, printed beside the figure; it does not affect the measurement. */
export interface Aim {
  figure: string;
  atMost?: number;
  atLeast?: number;
}

export interface Report {
  question: string;
  /** Carillon's figures, one entry for each run of the bench. */
  carillon: Figures[];
  peers: Record<string, Figures[]>;
  /** The machine's limit without a scheduler, one entry for each run of the bench. */
  limit: Figures[];
  aims: Aim[];
  machine: string;
  notes: string[];
}

/** Creates a report without runs. @param machine description of the measuring machine, from `machine()` */
export const newReport = (question: string, aims: Aim[], machine: string): Report => ({
  question,
  carillon: [],
  peers: {},
  limit: [],
  aims,
  machine,
  notes: [],
});

/** Adds a peer's figures of one run of the bench to the report. */
export function addPeer({ peers }: Report, who: string, found: Figures): void {
  peers[who] ??= [];
  peers[who].push(found);
}

/** Names of figures for which the report gives the highest value of all runs, not the median, so that a single bad run is visible. */
const worstCounts = /^(?:lost|doubled|missed|skipped|early|undelivered|slots_twice|\w+_reused|acked_lost)(?:_|$)/;

/** Summarises the runs: the median of each figure, or the highest value of figures that should be zero. */
export function summary(runs: Figures[]): Figures {
  const names = new Set(runs.flatMap((figures) => Object.keys(figures)));
  return Object.fromEntries(
    [...names].map((name) => {
      const values = runs.flatMap((figures) => figures[name] ?? []);
      return [name, rounded(worstCounts.test(name) ? Math.max(...values) : median(values))];
    }),
  );
}

/** Describes the machine. @param server description of the server under measurement, with version and durability settings */
export function machine(server: string): string {
  const model = cpus()[0]?.model.trim() ?? "unknown processor";
  const memory = Math.round(totalmem() / 2 ** 30);
  return `${availableParallelism()} × ${model}, ${memory} GiB, ${process.platform}, Node ${process.versions.node}, ${server}`;
}

/** Returns the report as a readable table. */
export function table(report: Report): string {
  const columns: [string, Figures[]][] = [
    ["carillon", report.carillon],
    ...Object.entries(report.peers),
    ["limit", report.limit],
  ];
  const shown = columns.filter(([, runs]) => runs.length > 0);
  const names = [...new Set(shown.flatMap(([, runs]) => runs.flatMap((figures) => Object.keys(figures))))];
  const rows = [["figure", ...shown.map(([who]) => who), "aim"]];
  for (const name of names) {
    const aim = report.aims.find(({ figure }) => figure === name);
    rows.push([name, ...shown.map(([, runs]) => cell(runs, name)), aim ? verdict(aim, report.carillon) : ""]);
  }
  const widths = rows[0]?.map((_, i) => Math.max(...rows.map((row) => (row[i] as string).length))) ?? [];
  return rows
    .map((row) =>
      row
        .map((text, i) => text.padEnd(widths[i] as number))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

function cell(runs: Figures[], name: string): string {
  const values = runs.flatMap((figures) => figures[name] ?? []);
  if (values.length === 0) return "";
  const given = String(summary(runs)[name]);
  if (values.length === 1) return given;
  return `${given} (${rounded(Math.min(...values))}–${rounded(Math.max(...values))})`;
}

function verdict({ figure, atMost, atLeast }: Aim, runs: Figures[]): string {
  const value = summary(runs)[figure] ?? Number.NaN;
  const reached = (atMost === undefined || value <= atMost) && (atLeast === undefined || value >= atLeast);
  const bounds = [atLeast === undefined ? "" : `≥ ${atLeast}`, atMost === undefined ? "" : `≤ ${atMost}`];
  return `${bounds.filter(Boolean).join(" ")} ${reached ? "reached" : "NOT REACHED"}`;
}

/** The number of runs of the bench. A bench of the machine alone has only limits. */
const runsOf = ({ carillon, limit }: Report): number => carillon.length || limit.length;

/** Returns the summaries of the runs (see `summary`) as one line of JSON, the last line of the output. */
export function jsonLine(report: Report): string {
  const { question, carillon, peers, limit, machine } = report;
  return JSON.stringify({
    question,
    runs: runsOf(report),
    carillon: summary(carillon),
    peers: Object.fromEntries(Object.entries(peers).map(([who, runs]) => [who, summary(runs)])),
    limit: summary(limit),
    machine,
  });
}

/** Prints table and notes, unless `jsonOnly` is set, and then the JSON line. */
export function print(report: Report, jsonOnly: boolean): void {
  if (!jsonOnly) {
    const runs = runsOf(report);
    console.log(
      `\n${report.question}, ${runs} ${runs === 1 ? "run" : "runs: median (min–max); of what must not happen the most"}`,
    );
    console.log(`${report.machine}\n\n${table(report)}\n`);
    for (const note of report.notes) console.log(note);
  }
  console.log(jsonLine(report));
}
