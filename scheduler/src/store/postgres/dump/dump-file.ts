/**
 * The format of a dump: lines of JSON, so that any program can read it and the major version of PostgreSQL does not matter. The first line
 * is the header, an object. The rows of each table follow, as arrays of the columns' texts in the header's order, and after each table an
 * object with the number of its rows and their checksum. The last line is an object with the sequences and the number of all rows. A file
 * without this last line is truncated.
 */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { CarillonError, messageOf } from "../../../base/errors.ts";

export const dumpFormat = 1;

export interface DumpedTable {
  name: string;
  columns: string[];
  /** The names of the table's daily partitions, if it is a table of the history. */
  partitions: string[];
}

export interface DumpHeader {
  carillon: "store";
  format: number;
  /** The version of Carillon. */
  version: string;
  /** The number of the newest migration of the schema. */
  migration: number;
  schema: string;
  /** The version of PostgreSQL. */
  server: string;
  atMs: number;
  tables: DumpedTable[];
}

export interface TableEnd {
  table: string;
  rows: number;
  sha256: string;
}

export interface DumpedSequence {
  name: string;
  /** Text, because the value may be above 2^53. */
  value: string;
  called: boolean;
}

export interface DumpEnd {
  end: true;
  rows: number;
  sequences: DumpedSequence[];
  /** The digest of the header's line, of the lines that end the tables, and of the sequences as JSON. */
  sha256: string;
}

export interface DumpReader {
  header(header: DumpHeader): Promise<void>;
  /** @param line JSON of an array with the columns' texts */
  row(table: DumpedTable, line: string): Promise<void>;
  tableEnd(table: DumpedTable, end: TableEnd): Promise<void>;
  end(end: DumpEnd): Promise<void>;
}

export interface Checksum {
  add(line: string): void;
  end(table: string): TableEnd;
}

export function checksum(): Checksum {
  const hash = createHash("sha256");
  let rows = 0;
  return {
    add(line) {
      hash.update(line).update("\n");
      rows++;
    },
    end: (table) => ({ table, rows, sha256: hash.digest("hex") }),
  };
}

const invalid = (number: number, message: string) =>
  new CarillonError("FILE_INVALID", `line ${number}: ${message}`, {
    path: `line ${number}`,
    hint: "Copy the file anew from where it was made, or dump the store again. Nothing was loaded.",
  });

/**
 * Reads the file to its end and checks all of it, calling `reader` for each part.
 * @throws FILE_INVALID, with the number of the line unless the file cannot be read; STORE_NEWER; errors of `reader`
 */
export async function readDump(path: string, reader: DumpReader): Promise<DumpHeader> {
  let header: DumpHeader | undefined;
  let end: DumpEnd | undefined;
  let [number, at, total] = [0, 0, 0];
  let sum = checksum();
  const frame = createHash("sha256");
  for await (const line of linesOf(path)) {
    number++;
    if (end) throw invalid(number, "something follows the end");
    if (!header) {
      header = headerOf(line);
      frame.update(line).update("\n");
      await reader.header(header);
      continue;
    }
    const table = header.tables[at];
    const value = parsed(line, number);
    if (Array.isArray(value)) {
      if (value.length !== table?.columns.length) throw invalid(number, `it is no row of ${table?.name ?? "a table"}`);
      sum.add(line);
      await reader.row(table, line);
    } else if (table) {
      const found = sum.end(table.name);
      const said = value as unknown as TableEnd;
      if (said.table !== found.table || said.rows !== found.rows || said.sha256 !== found.sha256)
        throw invalid(
          number,
          `${found.rows} rows of ${table.name} stand here, and they are not those that were written`,
        );
      frame.update(line).update("\n");
      await reader.tableEnd(table, found);
      total += found.rows;
      at++;
      sum = checksum();
    } else {
      end = value as unknown as DumpEnd;
      if (end.end !== true || end.rows !== total || !Array.isArray(end.sequences))
        throw invalid(number, `it is not the end of ${total} rows`);
      if (frame.update(JSON.stringify(end.sequences)).digest("hex") !== end.sha256)
        throw invalid(number, "the header, the counts or the sequences are not those that were written");
      await reader.end(end);
    }
  }
  if (!header || !end) throw invalid(number + 1, "the file was cut: its end is missing");
  return header;
}

function headerOf(line: string): DumpHeader {
  const header = parsed(line, 1) as unknown as DumpHeader;
  if (header.carillon !== "store" || !Array.isArray(header.tables))
    throw invalid(1, "this is no file of `carillon store dump`");
  if (header.format !== dumpFormat)
    throw new CarillonError("STORE_NEWER", `the file's format is ${header.format}, this Carillon reads ${dumpFormat}`, {
      hint: `Load it with Carillon ${header.version} or newer.`,
    });
  return header;
}

function parsed(line: string, number: number): object {
  try {
    const value: unknown = JSON.parse(line);
    if (typeof value === "object" && value !== null) return value;
  } catch (error) {
    throw invalid(number, `it is no JSON: ${messageOf(error)}`);
  }
  throw invalid(number, "it is neither a row nor an object");
}

/** Yields the file's lines. It splits only at line feeds, because JSON texts may contain other line separators. */
async function* linesOf(path: string): AsyncGenerator<string> {
  let begun: Buffer[] = [];
  try {
    for await (const chunk of createReadStream(path, { highWaterMark: 1 << 20 }) as AsyncIterable<Buffer>) {
      let from = 0;
      for (let to = chunk.indexOf(10); to >= 0; to = chunk.indexOf(10, from)) {
        yield Buffer.concat([...begun, chunk.subarray(from, to)]).toString("utf8");
        begun = [];
        from = to + 1;
      }
      if (from < chunk.length) begun.push(chunk.subarray(from));
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).syscall === undefined) throw error;
    throw new CarillonError("FILE_INVALID", `${path} cannot be read: ${messageOf(error)}`, { cause: error });
  }
  // A last line without a line feed is incomplete. An empty line is yielded in its place, which `readDump` rejects.
  if (begun.length > 0) yield "";
}
