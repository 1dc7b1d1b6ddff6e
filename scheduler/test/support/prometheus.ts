import type { ChildProcess } from "node:child_process";
import { spawnSync } from "node:child_process";
import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { mortal, throwAwayFolder } from "@carillon/zookeeper/testing";

/** The types of the functions that scripts/servers/prometheus.mjs exports. */
interface Start {
  promtoolOf(program: string): string;
  startPrometheus(program: string, folder: string): Promise<{ url: string; child: ChildProcess }>;
}

const script = new URL("../../../scripts/servers/prometheus.mjs", import.meta.url).href;

export interface Sample {
  metric: Record<string, string>;
  value: [number, string];
}

export interface FiringAlert {
  labels: Record<string, string>;
  annotations: Record<string, string>;
  state: "pending" | "firing";
}

export interface Exemplar {
  labels: Record<string, string>;
  value: string;
}

export interface ExemplarSeries {
  seriesLabels: Record<string, string>;
  exemplars: Exemplar[];
}

function program(): string {
  const found = process.env.CARILLON_TEST_PROMETHEUS;
  if (!found) throw new Error("CARILLON_TEST_PROMETHEUS is not set: run the tests with `npm test`");
  return found;
}

/** Runs promtool in a folder that has these files. @returns its exit code and everything that it printed */
export async function promtool(files: Record<string, string>, ...args: string[]) {
  const { promtoolOf } = (await import(script)) as Start;
  const folder = throwAwayFolder("promtool");
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  const ended = spawnSync(promtoolOf(program()), args, { cwd: folder, encoding: "utf8" });
  return { code: ended.status, output: `${ended.stdout}${ended.stderr}` };
}

/** A Prometheus for one test, which scrapes and evaluates once a second. It ends with the process that started it. */
export class Prometheus {
  readonly #url: string;
  readonly #folder: string;
  readonly #child: ChildProcess;

  private constructor(url: string, folder: string, child: ChildProcess) {
    this.#url = url;
    this.#folder = folder;
    this.#child = child;
  }

  static async start(rules: string, token: string): Promise<Prometheus> {
    const { startPrometheus } = (await import(script)) as Start;
    const folder = throwAwayFolder("prometheus");
    mkdirSync(join(folder, "targets"));
    writeFileSync(join(folder, "carillon.rules.yml"), rules);
    const configuration = `
global: { scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s }
rule_files: [carillon.rules.yml]
scrape_configs:
  - job_name: carillon
    authorization: { credentials: "${token}" }
    file_sd_configs: [{ files: ["targets/*.json"], refresh_interval: 1s }]
`;
    writeFileSync(join(folder, "prometheus.yml"), configuration);
    const { url, child } = await startPrometheus(program(), folder);
    return new Prometheus(url, folder, mortal(child));
  }

  /** Makes Prometheus scrape these addresses from now on, and no others. */
  scrape(addresses: readonly string[]): void {
    const file = join(this.#folder, "targets.json");
    writeFileSync(file, JSON.stringify([{ targets: addresses }]));
    renameSync(file, join(this.#folder, "targets/carillon.json")); // so Prometheus never reads half a file
  }

  /** Resolves with the data that Prometheus's API returns. @throws with the API's error message if it refuses the request */
  async ask<Data>(path: string, parameters: Record<string, string> = {}): Promise<Data> {
    const response = await fetch(`${this.#url}/api/v1/${path}?${new URLSearchParams(parameters)}`);
    const answer = (await response.json()) as { status: string; data: Data; error?: string };
    if (answer.status !== "success") throw new Error(`${path} ${JSON.stringify(parameters)}: ${answer.error}`);
    return answer.data;
  }

  async query(expression: string): Promise<Sample[]> {
    return (await this.ask<{ result: Sample[] }>("query", { query: expression })).result;
  }

  async firing(name: string): Promise<FiringAlert[]> {
    const { alerts } = await this.ask<{ alerts: FiringAlert[] }>("alerts");
    return alerts.filter(({ labels, state }) => labels.alertname === name && state === "firing");
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const gone = new Promise((resolve) => this.#child.once("exit", resolve));
    this.#child.kill("SIGTERM");
    await gone;
  }
}
