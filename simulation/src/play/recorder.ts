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

/** Statements within a transaction have no names; this text marks the one that ends a step of an operation. */
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

/** Records events, in their order. */
export class Recorder {
  readonly executions: Execution[] = [];
  readonly operations: Operation[] = [];
  readonly applied: Applied[] = [];
  readonly happenings: Happening[] = [];
  /** Events that must never happen; each shows a bug. */
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

  /** Marks that the following entries of `applied` ran on a store that may lack the earlier ones. */
  wentBack(storeMs: number): void {
    this.applied.push({ atMs: this.#universe.nowMs, storeMs, who: "", name: wentBack, values: [], rows: [] });
  }

  /** Records a log line. An error line that reports a failed service without a known reason shows a bug. */
  logged(what: string, isError: boolean): void {
    this.happenings.push({ atMs: this.#universe.nowMs, what });
    if (isError && /a service failed/.test(what)) this.unexpected(what);
  }

  unexpected(what: string): void {
    this.#universe.note(`unexpected: ${what}`);
    this.surprises.push({ atMs: this.#universe.nowMs, what });
  }

  /** @returns the claimed runs */
  ran(who: string, statement: Statement, given: Record<string, unknown>[], storeMs: number): Applied["rows"] {
    const { values } = statement;
    const name = nameOf(statement);
    if (!kept.has(name)) return [];
    const rows = told(name, given, values);
    this.applied.push({ atMs: this.#universe.nowMs, storeMs, who, name, values, rows });
    return name === "claim" ? rows : [];
  }
}

/** A claim's runs come in one row, as columns, with times relative to that of the claim, which is its last value. */
function told(name: string, rows: Record<string, unknown>[], values: unknown[]): Record<string, unknown>[] {
  if (name === "session-beat") return [];
  if (name !== "claim") return rows;
  return claimedRuns(rows[0] as ClaimedColumns | undefined, Number(values[5])).map((run) => ({ ...run }));
}
