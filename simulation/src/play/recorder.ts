import { type ClaimedColumns, claimedRuns } from "../../../scheduler/src/store/postgres/claims/claimed-columns.ts";
import { type Applied, type Execution, type Happening, type Operation, wentBack } from "../history.ts";
import { lockStatements } from "../locks/seen.ts";
import type { Statement } from "../world/server.ts";
import type { Universe } from "../world/universe.ts";

/** Names of the statements that the checks need. */
const kept = new Set([
  "claim",
  "claim-turn",
  "claim-adopt",
  "claim-held",
  "run-insert-here",
  "run-insert-keyed-here",
  "run-insert-one-here",
  "session-open",
  "session-end",
  "session-campaign",
  "session-resign",
  "settle-finish",
  "settle-finish-failed",
  "session-beat",
  "operation-settle",
  "operation-advance",
  ...lockStatements,
]);

/**
 * Matches the statement that ends a step of an operation. Statements within a transaction have no name, so they are recognised by their
 * text.
 */
const advanceText = /\.operation set done = done \+ \$2/;
const isAdvance = new Map<string, boolean>();

function nameOf({ name, text }: Statement): string {
  if (name !== "") return name.replace(/-(?:unserved|bare)$/, "");
  let known = isAdvance.get(text);
  if (known === undefined) {
    known = advanceText.test(text);
    isAdvance.set(text, known);
  }
  return known ? "operation-advance" : name;
}

/** Records the events of a simulation in their order. */
export class Recorder {
  readonly executions: Execution[] = [];
  readonly operations: Operation[] = [];
  readonly applied: Applied[] = [];
  readonly happenings: Happening[] = [];
  /** Events that must never happen; each of them shows a bug. */
  readonly surprises: Happening[] = [];
  readonly traced: boolean;
  readonly #universe: Universe;

  constructor(universe: Universe, traced: boolean) {
    this.#universe = universe;
    this.traced = traced;
  }

  happened(what: string): void {
    this.#universe.note(what);
    this.happenings.push({ atMs: this.#universe.nowMs, what });
  }

  /** Adds an entry to `applied` after which the statements ran on another store, which may lack the effects of earlier ones. */
  wentBack(storeMs: number): void {
    this.applied.push({ atMs: this.#universe.nowMs, storeMs, who: "", name: wentBack, values: [], rows: [] });
  }

  /** Records a log line. An error line that says that a service failed shows a bug. */
  logged(what: string, isError: boolean): void {
    this.happenings.push({ atMs: this.#universe.nowMs, what });
    if (isError && /a service failed/.test(what)) this.unexpected(what);
  }

  unexpected(what: string): void {
    this.#universe.note(`unexpected: ${what}`);
    this.surprises.push({ atMs: this.#universe.nowMs, what });
  }

  /** Records a statement that the server has carried out, if the checks need it. @returns the claimed runs, if it was a claim */
  ran(who: string, statement: Statement, given: Record<string, unknown>[], storeMs: number): Applied["rows"] {
    const { values } = statement;
    const name = nameOf(statement);
    if (!kept.has(name)) return [];
    const rows = told(name, given, values);
    this.applied.push({ atMs: this.#universe.nowMs, storeMs, who, name, values, rows });
    return name === "claim" ? rows : [];
  }
}

/**
 * Returns the rows of a statement in the form in which the checks need them; a heartbeat needs none. A claim returns all its runs in one
 * row, as columns, with times relative to the time of the claim; here each run becomes a row.
 */
function told(name: string, rows: Record<string, unknown>[], values: unknown[]): Record<string, unknown>[] {
  if (name === "session-beat") return [];
  if (name !== "claim") return rows;
  return claimedRuns(rows[0] as ClaimedColumns | undefined, Number(values[5])).map((run) => ({ ...run }));
}
