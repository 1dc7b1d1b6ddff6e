import pg from "pg";

/*
 * Many rows travel as a few columns, each one array: as rows, a batch of 2,000 is 30,000 fields that PostgreSQL prints and
 * Node reads one by one, and as arrays of pg's making each number is quoted. Both cost more than the numbers' own work.
 */

type Column<Value> = readonly (Value | null)[];

/** Converts numbers to a column in PostgreSQL's array format; null if all values are null. */
export function numbers(column: Column<number>): string | null {
  if (!column.includes(null)) return `{${column.join(",")}}`;
  return column.every((value) => value === null) ? null : `{${column.map((value) => value ?? "NULL").join(",")}}`;
}

/** Converts texts to a column: null if all values are null, otherwise the list, which pg encodes. */
export const texts = (column: Column<string>): Column<string> | null =>
  column.every((value) => value === null) ? null : column;

const [int8, int2Array, int4Array, int8Array] = [20, 1005, 1007, 1016];

function readNumbers(text: string): (number | null)[] {
  return JSON.parse(`[${text.slice(1, -1).replaceAll("NULL", "null")}]`) as (number | null)[];
}

/** How results are parsed. All numbers used here are milliseconds and counters below 2^53, and all arrays have one dimension. */
export const types: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: "text") => {
    if (oid === int8) return Number;
    if (oid === int8Array || oid === int4Array || oid === int2Array) return readNumbers;
    return pg.types.getTypeParser(oid, format);
  }) as typeof pg.types.getTypeParser,
};
