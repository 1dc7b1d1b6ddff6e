import { pause, systemClock } from "../../base/clock.ts";
import { parseDuration } from "../../base/duration.ts";
import { type CarillonError, isCarillonError, isStoreAway } from "../../base/errors.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import type { Cluster } from "../nodes/cluster.ts";
import { withCluster } from "../reach.ts";
import type { CommonOptions } from "../store-choice.ts";
import { FullScreen } from "./full-screen.ts";
import type { Terminal } from "./terminal.ts";
import { localZone } from "./times.ts";
import { type TopView, topLines } from "./top-frame.ts";
import { latenessOf, type SortKey, sortKeys, TopReader, type TopState, taskRows, troublesOf } from "./top-state.ts";

export interface TopOptions extends CommonOptions {
  every: string;
  sort: string;
}

const shortestMs = 500;
/** The screen is redrawn at this interval, in ms, between two reads of the cluster, so that the clock and ages advance. */
const redrawMs = 1_000;
const pipedLines = 60;
const pipedColumns = 120;

/** Shows the cluster: as a full screen on a terminal, as one object with --json, else as one frame. */
export function top(options: TopOptions, terminal: Terminal): Promise<ExitCode> {
  const everyMs = parseDuration(options.every, "--every", shortestMs);
  const sort = (Object.entries(sortKeys).find(([, name]) => name === options.sort)?.[0] ?? "n") as SortKey;
  return withCluster(options, async ({ cluster, signal }) => {
    const reader = new TopReader(cluster);
    const first = await reader.read();
    if (terminal.json) {
      terminal.object(asJson(first, sort));
      return exitCodes.ok;
    }
    const view = { sort, everyMs, style: terminal.style, zone: localZone(), paused: false, from: 0, away: null };
    if (!process.stdout.isTTY || !process.stdin.isTTY || process.env.TERM === "dumb") {
      const { nowMs } = first;
      const lines = topLines(first, { ...view, nowMs, width: pipedColumns, height: pipedLines }).slice(0, -1);
      terminal.line(
        lines
          .map((line) => line.trimEnd())
          .join("\n")
          .trimEnd(),
      );
      return exitCodes.ok;
    }
    return new Top(cluster, reader, first, view, signal).run();
  });
}

type Kept = Pick<TopView, "sort" | "everyMs" | "style" | "zone" | "paused" | "from" | "away">;

/** True for errors that mean that the store or the server is unreachable for now; any other error ends the command. */
const passing = (error: unknown): error is CarillonError =>
  isStoreAway(error) || (isCarillonError(error) && /^(?:SERVER_UNREACHABLE|SERVER_BUSY|STOPPED)$/.test(error.code));

class Top {
  readonly #cluster: Cluster;
  readonly #reader: TopReader;
  readonly #over = new AbortController();
  readonly #view: Kept;
  readonly #screen: FullScreen;
  #state: TopState;
  #look: () => void = () => undefined;

  constructor(cluster: Cluster, reader: TopReader, first: TopState, view: Kept, interrupted: AbortSignal) {
    this.#cluster = cluster;
    this.#reader = reader;
    this.#state = first;
    this.#view = view;
    interrupted.addEventListener("abort", () => this.#over.abort(), { once: true });
    this.#screen = new FullScreen({ onKey: (key) => this.#onKey(key), onDraw: () => this.#draw() });
  }

  async run(): Promise<ExitCode> {
    this.#screen.open();
    const ticking = setInterval(() => this.#draw(), redrawMs);
    try {
      while (!this.#over.signal.aborted) {
        const woken = new Promise<void>((resolve) => {
          this.#look = resolve;
        });
        await Promise.race([pause(systemClock, this.#view.everyMs, this.#over.signal), woken]);
        if (this.#over.signal.aborted) break;
        if (!this.#view.paused) await this.#read();
      }
      return exitCodes.ok;
    } finally {
      clearInterval(ticking);
      this.#screen.close();
    }
  }

  async #read(): Promise<void> {
    try {
      this.#state = await this.#reader.read();
      this.#view.away = null;
    } catch (error) {
      if (this.#over.signal.aborted) return;
      if (!passing(error)) throw error;
      this.#view.away ??= { sinceMs: this.#cluster.nowMs(), why: error.message };
    }
    this.#draw();
  }

  #onKey(key: string): void {
    const view = this.#view;
    const page = Math.max(1, Math.floor((process.stdout.rows ?? 24) / 2));
    if (key === "q" || key === "ctrl-c" || key === "escape") this.#over.abort();
    else if (key === "p") view.paused = !view.paused;
    else if (key === " ") this.#look();
    else if (Object.hasOwn(sortKeys, key)) Object.assign(view, { sort: key, from: 0 });
    else if (key === "up" || key === "k") this.#scroll(-1);
    else if (key === "down" || key === "j") this.#scroll(1);
    else if (key === "page-up") this.#scroll(-page);
    else if (key === "page-down") this.#scroll(page);
    else if (key === "home") view.from = 0;
    this.#draw();
  }

  #scroll(by: number): void {
    this.#view.from = Math.max(0, Math.min(this.#state.tasks.length - 1, this.#view.from + by));
  }

  #draw(): void {
    const { columns: width = 80, rows: height = 24 } = process.stdout;
    // While the view is paused, its clock is stopped too.
    const nowMs = this.#view.paused ? this.#state.nowMs : Math.max(this.#state.nowMs, this.#cluster.nowMs());
    this.#screen.draw(topLines(this.#state, { ...this.#view, nowMs, width, height }));
  }
}

/** Converts one state of the cluster to the object that --json prints. */
function asJson(state: TopState, sort: SortKey): object {
  const { nowMs, running, overdue, ended, failing, members, leader } = state;
  return {
    at: new Date(nowMs).toISOString(),
    onTime: troublesOf(state).length === 0,
    troubles: troublesOf(state).map(({ text }) => text),
    lateness: latenessOf(ended),
    running: running.length,
    overdue: overdue.length,
    ended: ended.length,
    failed: ended.filter(({ state: end }) => end === "failed").length,
    failing: failing.map(({ lastMs, ...rest }) => ({ ...rest, last: new Date(lastMs).toISOString() })),
    leader: leader && { node: leader.node, term: leader.term },
    members: members.map(({ node, role, groups = [], seenMs, timeoutMs }) => ({
      node,
      role,
      groups,
      silent: nowMs - seenMs > timeoutMs,
    })),
    tasks: taskRows(state, sort).map(({ nextMs, ...row }) => ({
      ...row,
      next: nextMs === null ? null : new Date(nextMs).toISOString(),
    })),
  };
}
