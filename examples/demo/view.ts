/** The live view: a header, a line for each start, one line a second for the many delayed runs, and highlighted lines for trouble. */
import type { Request } from "./check.ts";
import type { Said, Seen } from "./record.ts";
import { count, lateText, runsOf, type Screen, timeOfDay } from "./screen.ts";
import { charge, type DebianTasks, heartbeat, reminder, settlements } from "./tasks.ts";

interface Flood {
  starts: number;
  worstMs: number;
  nodes: Map<string, number>;
}

const emptyFlood = (): Flood => ({ starts: 0, worstMs: 0, nodes: new Map() });

export interface Beginning {
  nodes: string[];
  leader: string;
  postgres: string;
  directory: string;
  node: string;
}

export class View {
  readonly #screen: Screen;
  readonly #debian: DebianTasks;
  readonly #commands: Map<string, string>;
  readonly #requests = new Map<number, Request>();
  #nameWidth = 20;
  #flood = emptyFlood();
  #again = emptyFlood();
  #killed: { node: string; atMs: number } | undefined;

  constructor(screen: Screen, debian: DebianTasks) {
    this.#screen = screen;
    this.#debian = debian;
    this.#commands = new Map(
      debian.tasks.map(({ name, command }) => [
        name,
        (command.argv[1] === "-c" ? command.argv.slice(2) : command.argv).join(" "),
      ]),
    );
    if (screen.width >= 100)
      this.#nameWidth = Math.min(28, Math.max(...[...this.#commands.keys()].map(({ length }) => length)));
  }

  header({ nodes, leader, postgres, directory, node }: Beginning): void {
    const { tasks, files, problems } = this.#debian;
    const screen = this.#screen;
    screen.line(`Carillon demo: ${nodes.length} processes, ${nodes.join(" and ")}; ${leader} leads`, "bold");
    screen.prose(`  store    PostgreSQL ${postgres}, embedded, in ${directory}; Node ${node}`, "           ", "dim");
    screen.line(`  ${heartbeat.name.padEnd(15)}  ${heartbeat.words}`);
    screen.line(`  ${charge.name.padEnd(15)}  ${charge.words}`);
    for (const { name, words } of settlements) screen.prose(`  ${name.padEnd(15)}  ${words}`, " ".repeat(19));
    screen.prose(
      `  ${"crontabs".padEnd(15)}  ${tasks.length} tasks from ${files} crontabs of Debian packages; their commands are checked and logged, never run`,
      " ".repeat(19),
    );
    for (const problem of problems) screen.prose(`${" ".repeat(19)}left out: ${problem}`, " ".repeat(21), "dim");
  }

  enqueued(requests: Request[]): void {
    for (const request of requests) this.#requests.set(request.run, request);
    const delayed = requests.filter(({ kind }) => kind === "delayed").length;
    this.#screen.prose(
      `  ${reminder.name.padEnd(15)}  ${count(delayed)} delayed runs, each at a time of its own`,
      " ".repeat(19),
    );
    this.#screen.prose(
      `  ${"by hand".padEnd(15)}  each of the crontabs' tasks once, as most come due once a day`,
      " ".repeat(19),
    );
    this.#screen.line();
  }

  counting(fromMs: number, seconds: number | null): void {
    const until = seconds === null ? "until Ctrl-C" : `for ${seconds} s`;
    this.loud(fromMs, `from here on, ${until}, everything that comes due is counted`, "bold");
  }

  show(record: Seen | Said): void {
    if (record.kind === "said") this.#screen.line(`${timeOfDay(record.at)}    ${record.node}: ${record.text}`, "dim");
    else if (record.task === charge.name && record.attempt > 1) this.#attempt(record);
    else if (record.kind !== "end") this.#fire(record);
  }

  #attempt({ kind, attempt, ...record }: Seen): void {
    if (kind === "failed") this.#line(record, `attempt ${attempt} failed, to be tried again`, "yellow");
    if (kind === "end") this.#line(record, `attempt ${attempt} succeeded`, "green");
  }

  #fire(record: Seen): void {
    const request = this.#requests.get(record.run);
    const lateMs = record.at - (request?.dueMs ?? record.slot ?? record.at);
    const again = this.#killed && record.at - this.#killed.atMs > 1_500 && lateMs > 1_500;
    const flood = again ? this.#again : record.task === reminder.name ? this.#flood : undefined;
    if (flood) {
      if (record.kind === "start") add(flood, record, lateMs);
      return;
    }
    if (record.kind === "failed") {
      this.#attempt(record);
      return;
    }
    const command = this.#commands.get(record.task);
    const late = lateText(lateMs);
    if (command === undefined) this.#line(record, `slot ${timeOfDay(record.slot ?? 0, { millis: false })}  ${late}`);
    else this.#line(record, `${request ? "by hand" : "slot"}  ${late}  would run: ${command}`, "cyan");
  }

  #line(
    { at, task, node }: Pick<Seen, "at" | "task" | "node">,
    text: string,
    paint?: "yellow" | "green" | "cyan",
  ): void {
    const name = task.length > this.#nameWidth ? `${task.slice(0, this.#nameWidth - 1)}…` : task;
    this.#screen.line(`${timeOfDay(at)}  ${name.padEnd(this.#nameWidth)}  ${node.padEnd(7)}  ${text}`, paint);
  }

  /** Called once a second; prints one line for all delayed runs that started in that second. */
  second(nowMs: number): void {
    if (this.#flood.starts === 0) return;
    this.#screen.line(`${timeOfDay(nowMs)}  ${reminder.name.padEnd(this.#nameWidth)}  ${floodWords(this.#flood)}`);
    this.#flood = emptyFlood();
  }

  /** Called after each reading; prints one line for all runs of the dead process that another node has started since. */
  read(nowMs: number): void {
    if (this.#again.starts === 0 || !this.#killed) return;
    const after = ((nowMs - this.#killed.atMs) / 1_000).toFixed(1);
    const nodes = [...this.#again.nodes.keys()].join(", ");
    const runs = `${runsOf(this.#again.starts)} that ${this.#killed.node} had claimed`;
    this.loud(nowMs, `↻ ${runs} started on ${nodes}, ${after} s after the kill`, "green");
    this.#again = emptyFlood();
  }

  killed(node: string, pid: number, atMs: number, claimed: number, underWay: number): void {
    this.#killed = { node, atMs };
    this.loud(atMs, `✗ kill -9 ${node} (process ${pid}), the leader`, "red");
    this.loud(atMs, `  it had claimed ${runsOf(claimed)}, ${count(underWay)} of them under way`, "red");
  }

  loud(atMs: number, text: string, paint: "red" | "yellow" | "green" | "bold"): void {
    this.#screen.prose(`${timeOfDay(atMs)}  ${text}`, " ".repeat(16), paint);
  }
}

function add(flood: Flood, { node }: Seen, lateMs: number): void {
  flood.starts++;
  flood.worstMs = Math.max(flood.worstMs, lateMs);
  flood.nodes.set(node, (flood.nodes.get(node) ?? 0) + 1);
}

function floodWords({ starts, worstMs, nodes }: Flood): string {
  const shares = [...nodes].sort().map(([node, share]) => `${share} ${node}`);
  return `${String(starts).padStart(3)} runs  the latest ${lateText(worstMs)}  (${shares.join(", ")})`;
}
