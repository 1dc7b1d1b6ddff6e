import { readSync, writeSync } from "node:fs";
import type { Socket } from "node:net";
import pg from "pg";

export interface Reply {
  readonly rows: Record<string, unknown>[];
  readonly rowCount: number;
  /** The server's command tag, such as `UPDATE 1`. */
  readonly tag: string;
  readonly error: Error | undefined;
}

interface Column {
  readonly name: string;
  readonly parse: (text: string) => unknown;
}

/** A prepared statement, with the description of its columns, which the server sends when the statement is prepared. */
interface Prepared {
  readonly name: string;
  readonly text: string;
  columns: Column[];
}

/** Node's internal handle of a socket. It is used because no public function reads from a socket without the event loop. */
interface Handle {
  readonly fd: number;
  setBlocking(isBlocking: boolean): number;
  readStart(): number;
  readStop(): number;
}

/** SQLSTATE of the notices that carry notifications; see Stage. */
export const toldState = "CN001";
const nothing = Buffer.alloc(0);
const notPrepared = /^\s*(?:begin|commit|rollback|listen|set|create|alter|drop|vacuum|truncate|discard)\b/i;

/**
 * One connection of the simulated server, faster than pg's client. pg connects and signs in; then this class reads and writes the
 * protocol's bytes. Each text is prepared and described once; a statement is one write and one read. Where possible the process blocks
 * until the answer (`askNow`), which avoids a turn of the event loop; simulated time stands still meanwhile.
 */
export class Wire {
  readonly pid: number;
  readonly #client: pg.Client;
  readonly #socket: Handle;
  readonly #parserOf: (oid: number) => (text: string) => unknown;
  readonly #prepared = new Map<string, Prepared>();
  #names = 0;
  readonly #tell: (payload: string) => void;
  #out = Buffer.allocUnsafe(1 << 16);
  #end = 0;
  readonly #chunk = Buffer.allocUnsafe(1 << 16);
  #in: Buffer = nothing;
  #current: { statement: Prepared; rows: Record<string, unknown>[]; tag: string; error: Error | undefined } | undefined;
  #awaited = 0;
  #reply: Reply = { rows: [], rowCount: 0, tag: "", error: undefined };
  /** Resolves the promise of the asynchronous query in progress when its reply is complete; undefined if none is in progress. */
  #done: (() => void) | undefined;
  /** The begin statement of a new transaction; it is sent with the transaction's first statement. */
  #before = "";

  private constructor(client: pg.Client, types: pg.CustomTypesConfig, tell: (payload: string) => void) {
    this.#client = client;
    const { connection, processID } = client as unknown as { connection: { stream: Socket }; processID: number };
    this.pid = processID;
    const { stream } = connection;
    this.#socket = (stream as unknown as { _handle: Handle })._handle;
    this.#parserOf = (oid) => types.getTypeParser(oid, "text") as (text: string) => unknown;
    this.#tell = tell;
    stream.removeAllListeners("data");
    stream.on("data", (chunk: Buffer) => this.#read(chunk));
    this.#socket.readStop();
    this.#socket.setBlocking(true);
  }

  /** @param tell receives the notifications of a statement, before the statement's reply */
  static async open(
    url: string,
    options: string,
    types: pg.CustomTypesConfig,
    tell: (payload: string) => void,
  ): Promise<Wire> {
    const client = new pg.Client({ connectionString: url, options, types, application_name: "server" });
    await client.connect();
    return new Wire(client, types, tell);
  }

  end(): Promise<void> {
    this.#socket.readStart();
    return this.#client.end();
  }

  /** Begins a transaction: the begin statement is sent with the next statement, without a round trip of its own. */
  begin(text: string): void {
    this.#before = text;
  }

  /** True if a transaction has begun of which nothing has been sent yet. */
  get isUnsent(): boolean {
    return this.#before !== "";
  }

  forgetBegin(): void {
    this.#before = "";
  }

  /** Runs a statement and blocks the process until the server's reply. @returns the reply */
  askNow(text: string, values: readonly unknown[]): Reply {
    this.#send(text, values);
    while (this.#current) {
      const length = readSync(this.#socket.fd, this.#chunk);
      if (length === 0) throw new Error("the server has closed the connection");
      this.#read(this.#chunk.subarray(0, length));
    }
    return this.#reply;
  }

  /** Runs a statement like `askNow`, but without blocking the process, because the statement may wait for locks. */
  ask(text: string, values: readonly unknown[]): Promise<Reply> {
    this.#send(text, values);
    this.#socket.readStart();
    return new Promise((resolve) => {
      this.#done = () => {
        this.#done = undefined;
        this.#socket.readStop();
        resolve(this.#reply);
      };
    });
  }

  #send(text: string, values: readonly unknown[]): void {
    if (this.#current) throw new Error("a connection was asked while it was at work");
    this.#awaited = 1;
    if (this.#before !== "") {
      this.#simple(this.#before);
      this.#before = "";
      this.#awaited++;
    }
    let statement = this.#prepared.get(text);
    if (notPrepared.test(text)) {
      statement = { name: "", text, columns: [] };
      this.#simple(text);
    } else {
      if (statement === undefined) {
        statement = { name: `s${++this.#names}`, text, columns: [] };
        this.#prepared.set(text, statement);
        this.#message(0x50, () => {
          this.#text((statement as Prepared).name);
          this.#text(text);
          this.#int16(0);
        });
        this.#message(0x44, () => {
          this.#bytes("S");
          this.#text((statement as Prepared).name);
        });
      }
      this.#bind(statement.name, values);
    }
    this.#current = { statement, rows: [], tag: "", error: undefined };
    for (let sent = 0; sent < this.#end; ) sent += writeSync(this.#socket.fd, this.#out, sent, this.#end - sent);
    this.#end = 0;
  }

  // ---- sending

  #simple(text: string): void {
    this.#message(0x51, () => this.#text(text));
  }

  #bind(name: string, values: readonly unknown[]): void {
    this.#message(0x42, () => {
      this.#text("");
      this.#text(name);
      this.#int16(0);
      this.#int16(values.length);
      for (const value of values) {
        const text = asText(value);
        if (text === null) this.#int32(-1);
        else {
          const at = this.#end;
          this.#int32(0);
          this.#bytes(text);
          this.#out.writeInt32BE(this.#end - at - 4, at);
        }
      }
      this.#int16(0);
    });
    this.#message(0x45, () => {
      this.#text("");
      this.#int32(0);
    });
    this.#message(0x53, () => undefined);
  }

  #message(type: number, body: () => void): void {
    this.#room(5);
    this.#out[this.#end++] = type;
    const at = this.#end;
    this.#end += 4;
    body();
    this.#out.writeInt32BE(this.#end - at, at);
  }

  #room(bytes: number): void {
    if (this.#end + bytes <= this.#out.length) return;
    const larger = Buffer.allocUnsafe(2 * (this.#end + bytes));
    this.#out.copy(larger, 0, 0, this.#end);
    this.#out = larger;
  }

  #int16(value: number): void {
    this.#room(2);
    this.#end = this.#out.writeInt16BE(value, this.#end);
  }

  #int32(value: number): void {
    this.#room(4);
    this.#end = this.#out.writeInt32BE(value, this.#end);
  }

  #bytes(text: string): void {
    this.#room(3 * text.length);
    this.#end += this.#out.write(text, this.#end);
  }

  #text(text: string): void {
    this.#bytes(text);
    this.#room(1);
    this.#out[this.#end++] = 0;
  }

  // ---- receiving

  #read(chunk: Buffer): void {
    const all = this.#in.length > 0 ? Buffer.concat([this.#in, chunk]) : chunk;
    let at = 0;
    while (all.length - at >= 5) {
      const length = all.readInt32BE(at + 1);
      if (all.length - at < 1 + length) break;
      this.#hear(all[at] as number, all, at + 5, at + 1 + length);
      at += 1 + length;
    }
    this.#in = at < all.length ? Buffer.from(all.subarray(at)) : nothing;
  }

  #hear(type: number, all: Buffer, from: number, to: number): void {
    const current = this.#current;
    if (!current) return; // replies to session settings, which are sent between two statements
    switch (type) {
      case 0x44: // a row
        current.rows.push(row(current.statement.columns, all, from));
        return;
      case 0x54: // the row description
        current.statement.columns = this.#columns(all, from);
        return;
      case 0x43:
        current.tag = all.toString("latin1", from, to - 1);
        return;
      case 0x45:
        current.error ??= asError(all, from, to);
        return;
      case 0x4e: {
        const fields = fieldsOf(all, from, to);
        if (fields.get("C") === toldState) this.#tell(fields.get("M") ?? "");
        return;
      }
      case 0x5a: {
        if (--this.#awaited > 0) return;
        this.#current = undefined;
        const { statement, rows, tag, error } = current;
        const rowCount = error ? 0 : Number(tag.slice(tag.lastIndexOf(" ") + 1)) || 0;
        // The server does not have the statement if its preparation failed.
        if (error && statement.columns.length === 0) this.#prepared.delete(statement.text);
        this.#reply = { rows: error ? [] : rows, rowCount, tag, error };
        this.#done?.();
      }
    }
  }

  #columns(all: Buffer, from: number): Column[] {
    let at = from + 2;
    return Array.from({ length: all.readInt16BE(from) }, () => {
      const end = all.indexOf(0, at);
      const name = all.toString("utf8", at, end);
      const oid = all.readInt32BE(end + 7);
      at = end + 19;
      return { name, parse: this.#parserOf(oid) };
    });
  }
}

function row(columns: readonly Column[], all: Buffer, from: number): Record<string, unknown> {
  const read: Record<string, unknown> = {};
  let at = from + 2;
  for (const { name, parse } of columns) {
    const length = all.readInt32BE(at);
    at += 4;
    if (length < 0) read[name] = null;
    else {
      read[name] = parse(all.toString("utf8", at, at + length));
      at += length;
    }
  }
  return read;
}

function fieldsOf(all: Buffer, from: number, to: number): Map<string, string> {
  const fields = new Map<string, string>();
  for (let at = from; at < to && all[at] !== 0; ) {
    const end = all.indexOf(0, at + 1);
    fields.set(String.fromCharCode(all[at] as number), all.toString("utf8", at + 1, end));
    at = end + 1;
  }
  return fields;
}

/** Converts an ErrorResponse to pg's DatabaseError. */
function asError(all: Buffer, from: number, to: number): Error {
  const fields = fieldsOf(all, from, to);
  const error = new pg.DatabaseError(fields.get("M") ?? "", to - from, "error");
  return Object.assign(error, {
    severity: fields.get("S"),
    code: fields.get("C"),
    detail: fields.get("D"),
    hint: fields.get("H"),
    table: fields.get("t"),
    column: fields.get("c"),
    constraint: fields.get("n"),
    schema: fields.get("s"),
  });
}

/** Converts a parameter's value to the text that is sent to the server; null stands for SQL's null. */
function asText(value: unknown): string | null {
  if (value === null || value === undefined) return null;
  if (typeof value !== "object") return String(value);
  if (Array.isArray(value)) return asArray(value);
  if (Buffer.isBuffer(value)) return `\\x${value.toString("hex")}`;
  return value instanceof Date ? value.toISOString() : JSON.stringify(value);
}

function asArray(values: readonly unknown[]): string {
  const parts = values.map((value) => {
    if (value === null || value === undefined) return "NULL";
    if (Array.isArray(value)) return asArray(value);
    if (typeof value === "number") return String(value);
    return `"${(asText(value) as string).replace(/\\/g, "\\\\").replace(/"/g, '\\"')}"`;
  });
  return `{${parts.join()}}`;
}
