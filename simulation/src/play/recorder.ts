import { type ClaimedColumns, claimedRuns } from "../../../scheduler/src/store/postgres/claims/claimed-columns.ts";
import { type Applied, type Execution, type Happening, type Operation, wentBack } from "../history.ts";
import { lockStatements } from "../locks/seen.ts";
import type { Statement } from "../world/server.ts";
import type { Universe } from "../world/universe.ts";

/** Statements that the checks look at. */
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

/** Of those within transactions, which have no names: the one with which a step of an operation ends. */
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

/** Writes down what happens, in the order in which it does. */
export class Recorder {
  readonly executions: Execution[] = [];
  readonly operations: Operation[] = [];
  readonly applied: Applied[] = [];
  readonly happenings: Happening[] = [];
  /** What must not happen at all: a bug's own words. */
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

  /** What follows in `applied` came upon a store that may lack what stands before. */
  wentBack(storeMs: number): void {
    this.applied.push({ atMs: this.#universe.nowMs, storeMs, who: "", name: wentBack, values: [], rows: [] });
  }

  /** In a log: an error tells of trouble, and a service that failed for no known reason is a bug. */
  logged(what: string, isError: boolean): void {
    this.happenings.push({ atMs: this.#universe.nowMs, what });
    if (isError && /a service failed/.test(what)) this.unexpected(what);
  }

  unexpected(what: string): void {
    this.#universe.note(`unexpected: ${what}`);
    this.surprises.push({ atMs: this.#universe.nowMs, what });
  }

  /** @returns what was claimed */
  ran(who: string, statement: Statement, given: Record<string, unknown>[], storeMs: number): Applied["rows"] {
    const { values } = statement;
    const name = nameOf(statement);
    if (!kept.has(name)) return [];
    const rows = told(name, given, values);
    this.applied.push({ atMs: this.#universe.nowMs, storeMs, who, name, values, rows });
    return name === "claim" ? rows : [];
  }
}

/** A claim's runs come in one row, as columns, their times told from that of the claim, which is its last value. */
function told(name: string, rows: Record<string, unknown>[], values: unknown[]): Record<string, unknown>[] {
  if (name === "session-beat") return [];
  if (name !== "claim") return rows;
  return claimedRuns(rows[0] as ClaimedColumns | undefined, Number(values[5])).map((run) => ({ ...run }));
}
