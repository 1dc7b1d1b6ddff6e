/**
 * Runs a bench that compares Carillon with peers: parses the flags, measures each contender in turn, and prints the report. `--save` stores
 * the report's last line with the date and the command in docs/figures, where `npm run bench -- chart` reads it.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import pg from "pg";
import { type Figures, rounded } from "../measure/figures.ts";
import { type Aim, addPeer, jsonLine, machine, print, type Report } from "../measure/report.ts";
import { serverTitle } from "../measure/server.ts";
import { variable } from "./arena.ts";
import { contenders } from "./contender.ts";
import { type Better, lineOf, ratios, ratioText } from "./ratios.ts";
import { tellRedis } from "./redis.ts";

/** The numbers that flags can set: the default, and the value with `--quick`. */
export type Sizes = Record<string, { usual: number; quick: number }>;

export interface Question<Given extends Sizes> {
  name: string;
  sizes: Given;
  /** Default number of runs of the bench; 3 if undefined. */
  runs?: number;
  aims?: Aim[];
  /** Figures that are compared with the best peer's, and whether a higher or a lower value is better. */
  compared?: Record<string, Better>;
  /** Measures one contender once and returns its figures. */
  measure(who: string, sizes: Record<keyof Given, number>): Promise<Figures>;
  /** Measures the machine's limit without any scheduler; called in each run of the bench. */
  limit?(sizes: Record<keyof Given, number>): Promise<Figures>;
  /** Names of the contenders that take part; default: all. */
  who?: readonly string[];
  /**
   * Contenders that are Carillon with other settings, not peers. As for Carillon, the bench fails if one of them loses a run, or
   * starts a run twice or early.
   */
  ways?: readonly string[];
  notes?: string[];
}

export async function contest<Given extends Sizes>(question: Question<Given>, args = process.argv.slice(2)) {
  const { values } = parseArgs({
    args,
    options: {
      runs: { type: "string" },
      only: { type: "string" },
      quick: { type: "boolean", default: false },
      json: { type: "boolean", default: false },
      save: { type: "boolean", default: false },
      peers: { type: "boolean", default: false },
      "no-peers": { type: "boolean", default: false },
      ...Object.fromEntries(Object.keys(question.sizes).map((name) => [name, { type: "string" as const }])),
    },
  });
  const given = values as Record<string, string | boolean | undefined>;
  const quick = given.quick === true;
  const sizes = Object.fromEntries(
    Object.entries(question.sizes).map(([name, { usual, quick: few }]) => [
      name,
      whole(name, given[name] ?? (quick ? few : usual)),
    ]),
  ) as Record<keyof Given, number>;
  const unusual = Object.entries(question.sizes).find(([name, { usual }]) => sizes[name] !== usual)?.[0];
  if (given.save === true && unusual !== undefined)
    throw new Error(`--save keeps figures of the usual sizes, which the titles tell; --${unusual} is another`);
  const runs = whole("runs", given.runs ?? (quick ? 1 : (question.runs ?? 3)));
  const all: readonly string[] = question.who ?? contenders;
  const named = typeof given.only === "string" ? given.only.split(",") : undefined;
  const chosen = all.filter((who) => named?.includes(who) ?? (who === "carillon" || given["no-peers"] !== true));
  if ((chosen.length === 0 && all.length > 0) || named?.some((name) => !all.includes(name)))
    throw new Error(`--only takes names of ${all.join(", ")}, with commas between them`);

  const isOwn = (who: string) => who === "carillon" || question.ways?.includes(who) === true;

  const report: Report = {
    question: question.name,
    carillon: [],
    peers: {},
    limit: [],
    aims: question.aims ?? [],
    notes: [...(question.notes ?? [])],
    machine: machine(await servers(chosen.includes("bullmq"))),
  };
  const tell = (who: string, run: number, figures: Figures) => {
    const told = Object.entries(figures).map(([name, value]) => `${name} ${rounded(value)}`);
    if (given.json !== true) console.error(`${who} ${run}/${runs}: ${told.join(", ")}`);
  };
  for (let run = 1; run <= runs; run++) {
    if (question.limit) {
      const figures = await question.limit(sizes);
      tell("limit", run, figures);
      report.limit.push(figures);
    }
    for (const who of chosen) {
      const figures = await question.measure(who, sizes);
      tell(who, run, figures);
      if (who === "carillon") report.carillon.push(figures);
      else addPeer(report, who, figures);
      if (isOwn(who) && wrong(figures)) process.exitCode = 1;
    }
  }
  if (process.exitCode === 1)
    report.notes.push("IT DOES NOT ADD UP: runs were lost, doubled, or began before their time; see above.");
  report.notes.push(
    ...ratios(lineOf(report), question.compared ?? {}).map((ratio) => ratioText(ratio, isOwn(ratio.to))),
  );
  if (given.save === true) save(report, args);
  print(report, given.json === true);
}

/** The folder of the figures that `--save` stores and the chart shows. */
export const savedFolder = new URL("../../../docs/figures/", import.meta.url);

function save(report: Report, args: string[]): void {
  const said = args.filter((arg) => !["--save", "--json"].includes(arg));
  const command = ["npm run bench --", report.question, ...said].join(" ");
  const date = new Date().toISOString().slice(0, 10);
  mkdirSync(savedFolder, { recursive: true });
  const text = JSON.stringify({ date, command, ...JSON.parse(jsonLine(report)) }, null, 2);
  writeFileSync(new URL(`${report.question}.json`, savedFolder), `${text}\n`);
}

const wrong = (figures: Figures) =>
  Object.entries(figures).some(([name, value]) => /^(?:lost|doubled|early)(?:_|$)/.test(name) && value !== 0);

async function servers(redis: boolean): Promise<string> {
  const client = new pg.Client({ connectionString: variable("CARILLON_BENCH_POSTGRES_URL") });
  await client.connect();
  try {
    const title = await serverTitle(client);
    if (!redis) return title;
    const info = await tellRedis(variable("CARILLON_BENCH_REDIS_URL"), "INFO server");
    return `${title}, Redis ${/redis_version:(\S+)/.exec(info)?.[1]}, appendfsync everysec`;
  } finally {
    await client.end();
  }
}

function whole(name: string, text: string | number | boolean): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1) throw new Error(`--${name} must be a whole number above 0, not ${text}`);
  return value;
}
