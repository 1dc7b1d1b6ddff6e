import type { Log } from "../../base/log.ts";
import type { RunNotice } from "../../run/handler.ts";
import type { LogLevel } from "../config/log-levels.ts";
import { fieldsText, jsonLog, lineLog } from "../config/node-log.ts";
import { endLine } from "../runs/event-lines.ts";
import { LiveScreen } from "./live-screen.ts";
import { frameLines, LiveState, type UpcomingFire, upcomingLines } from "./live-state.ts";
import type { Style } from "./style.ts";
import { localZone, spanText } from "./times.ts";

/** The source of a view's data: a view calls these functions each time it draws. */
export interface Scene {
  /** The parts of the header line; the first part is the program's name. */
  header(): string[];
  /** The store's place as text, without its password. */
  readonly store: string;
  readonly coordination: string | null;
  leads(): { node: string; term: number | null }[];
  upcoming(count: number): UpcomingFire[];
  nowMs(): number;
}

export interface View {
  readonly log: Log;
  notice(notice: RunNotice): void;
  /** Called once all nodes of the process have started. */
  begin(scene: Scene): void;
  stopping(): void;
  end(): void;
}

const framesPerSecond = 8;
const upcomingShown = 5;

/** The view on a terminal: a block that is redrawn in place; failures and warnings are written above the block and stay there. */
export class LiveView implements View {
  readonly log: Log;
  readonly #style: Style;
  readonly #state = new LiveState();
  readonly #zone = localZone();
  readonly #began = performance.now();
  #screen: LiveScreen | undefined;
  #scene: Scene | undefined;
  #header: string[] = [];
  #timer: NodeJS.Timeout | undefined;
  #phase: "running" | "stopping" | "stopped" = "running";

  constructor(style: Style, level: LogLevel) {
    this.#style = style;
    this.log = lineLog(level, style, (line) => this.#stay(line));
  }

  notice(notice: RunNotice): void {
    const end = this.#state.observe(notice);
    if (end !== null && (end.outcome === "failed" || end.outcome === "retry"))
      this.#stay(endLine(end, this.#zone, this.#style));
  }

  begin(scene: Scene): void {
    this.#scene = scene;
    this.#screen = new LiveScreen();
    this.#draw();
    this.#timer = setInterval(() => this.#draw(), 1_000 / framesPerSecond);
  }

  stopping(): void {
    this.#phase = "stopping";
    this.#draw();
  }

  end(): void {
    clearInterval(this.#timer);
    this.#phase = "stopped";
    this.#draw();
    this.#screen?.close();
  }

  #stay(line: string): void {
    if (this.#screen) this.#screen.above(line);
    else process.stdout.write(`${line}\n`);
  }

  #draw(): void {
    if (!this.#scene || !this.#screen) return;
    // After the node has stopped it no longer leads, so the last frame shows the header that was made while the node was running.
    if (this.#phase === "running") this.#header = this.#scene.header();
    const { columns = 80, rows = 24 } = process.stdout;
    const frame = {
      header: this.#header,
      upcoming: this.#scene.upcoming(upcomingShown),
      nowMs: this.#scene.nowMs(),
      upMs: performance.now() - this.#began,
      phase: this.#phase,
      width: columns,
      height: rows - 1,
      zone: this.#zone,
      style: this.#style,
    };
    this.#screen.draw(frameLines(this.#state, frame));
  }
}

/** The view in a pipe or a file: one line per event. */
export class PlainView implements View {
  readonly log: Log;
  readonly #style: Style;
  readonly #state = new LiveState();
  readonly #zone = localZone();
  readonly #began = performance.now();

  constructor(style: Style, level: LogLevel) {
    this.#style = style;
    this.log = lineLog(level, style, (line) => this.#line(line));
  }

  notice(notice: RunNotice): void {
    const end = this.#state.observe(notice);
    if (end !== null) this.#line(`  ${endLine(end, this.#zone, this.#style)}`);
  }

  begin(scene: Scene): void {
    this.#line(scene.header().join("   "));
    const shown = { nowMs: scene.nowMs(), zone: this.#zone, style: this.#style };
    for (const line of upcomingLines(scene.upcoming(upcomingShown), shown)) this.#line(line);
  }

  stopping(): void {
    this.#line(
      `stopping: waiting for what runs${fieldsText({ running: this.#state.running.size || undefined }, this.#style)}`,
    );
  }

  end(): void {
    this.#line(`stopped after ${spanText(performance.now() - this.#began)}: ${this.#state.countsText(this.#style)}`);
  }

  #line(text: string): void {
    process.stdout.write(`${text}\n`);
  }
}

const leadershipLookMs = 250;

/** The view for programs: one JSON object per event, whose field `event` names the kind; docs/reference/cli-output.md lists the kinds. */
export class JsonView implements View {
  readonly log: Log;
  readonly #events: Log;
  readonly #state = new LiveState();
  #timer: NodeJS.Timeout | undefined;

  constructor(level: LogLevel) {
    this.#events = jsonLog(level);
    const { debug, info, warn, error } = this.#events;
    const logged =
      (write: Log["info"]): Log["info"] =>
      (fields, message) =>
        write.call(this.#events, { event: "log", ...fields }, message);
    this.log = { debug: logged(debug), info: logged(info), warn: logged(warn), error: logged(error) };
  }

  notice(notice: RunNotice): void {
    const end = this.#state.observe(notice);
    const { kind, runId, task, attempt, slotMs, dueMs, startedMs, endedMs, outcome } = notice;
    const iso = (ms: number | null) => (ms === null ? null : new Date(ms).toISOString());
    const fields = {
      event: kind,
      run: runId,
      task,
      attempt,
      slot: iso(slotMs),
      due: iso(dueMs),
      started: iso(startedMs),
      lateMs: round(startedMs - dueMs),
      ...(end === null
        ? {}
        : { ended: iso(endedMs), tookMs: round((endedMs ?? startedMs) - startedMs), outcome, error: end.error }),
    };
    this.#events[outcome === "failed" ? "warn" : "info"](fields, `run ${kind}`);
  }

  begin(scene: Scene): void {
    const { store, coordination } = scene;
    const upcoming = scene
      .upcoming(upcomingShown)
      .map(({ atMs, task, words }) => ({ at: new Date(atMs).toISOString(), task, words }));
    this.#events.info(
      { event: "ready", store, coordination, nodes: scene.leads().map(({ node }) => node), upcoming },
      "ready",
    );
    const told = new Map<string, number | null>();
    const look = () => {
      for (const { node, term } of scene.leads()) {
        if ((told.get(node) ?? null) === term) continue;
        told.set(node, term);
        this.#events.info({ event: "leadership", node, term }, term === null ? "this node follows" : "this node leads");
      }
    };
    look();
    this.#timer = setInterval(look, leadershipLookMs);
  }

  stopping(): void {
    this.#events.info({ event: "stopping", running: this.#state.running.size }, "stopping: waiting for what runs");
  }

  end(): void {
    clearInterval(this.#timer);
    const late = this.#state.lateness();
    this.#events.info(
      { event: "stopped", ...this.#state.counts, lateP50Ms: round(late?.p50), lateMaxMs: round(late?.max) },
      "stopped",
    );
  }
}

const round = (ms: number | undefined) => (ms === undefined ? undefined : Math.round(ms * 10) / 10);
