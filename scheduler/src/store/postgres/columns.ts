import pg from "pg";

/*
 * Many rows are sent as a few columns, each as the text of one array. Sent as rows, a batch of 2,000 runs is 30,000 fields, which
 * PostgreSQL prints and Node reads one by one; in arrays that pg encodes, each number is quoted. Either way costs more than converting
 * the numbers.
 */

type Column<Value> = readonly (Value | null)[];

/** Converts numbers to text in PostgreSQL's array format. @returns null if all values are null */
export function numbers(column: Column<number>): string | null {
  if (!column.includes(null)) return `{${column.join(",")}}`;
  return column.every((value) => value === null) ? null : `{${column.map((value) => value ?? "NULL").join(",")}}`;
}

/** Returns null if all texts are null, otherwise the same list, which pg encodes as an array. */
export const texts = (column: Column<string>): Column<string> | null =>
  column.every((value) => value === null) ? null : column;

const [int8, int2Array, int4Array, int8Array] = [20, 1005, 1007, 1016];

function readNumbers(text: string): (number | null)[] {
  return JSON.parse(`[${text.slice(1, -1).replaceAll("NULL", "null")}]`) as (number | null)[];
}

/** How pg parses results. All 64-bit numbers read here are milliseconds and counters below 2^53, and all arrays have one dimension. */
export const types: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: "text") => {
    if (oid === int8) return Number;
    if (oid === int8Array || oid === int4Array || oid === int2Array) return readNumbers;
    return pg.types.getTypeParser(oid, format);
  }) as typeof pg.types.getTypeParser,
};
