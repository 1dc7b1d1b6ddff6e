/**
 * Reads the rows of the requested tables from a dump of MySQL (`mysqldump`, or INSERT statements written by hand). No SQL is executed. The
 * text is searched for INSERT, REPLACE and CREATE TABLE; an INSERT that names no columns uses the columns of CREATE TABLE.
 */
import type { Row } from "./findings.ts";

type Token =
  /** A plain word or a quoted name. A `quoted` name is never a keyword. */
  | { kind: "name"; text: string; quoted: boolean; at: number }
  | { kind: "value"; value: string | number; at: number }
  | { kind: "sign"; text: string; at: number };

/** MySQL's escape sequences, by the character after the backslash. A backslash before any other character gives that character. */
const escapes: Record<string, string> = { "0": "\0", b: "\b", n: "\n", r: "\r", t: "\t", Z: "\x1a" };

const silent = /(?:\s+|--(?=\s)[^\n]*|#[^\n]*|\/\*[\s\S]*?\*\/)+/y;
const number = /-?(?:0x[\da-f]+|\d+(?:\.\d+)?(?:e[+-]?\d+)?)/iy;
const word = /[a-z_][\w$]*/iy;

export const isSql = (text: string): boolean =>
  /^\s*(?:--|#|\/\*|(?:insert|replace|create|drop|set|use|lock|begin|start)\b)/i.test(text);

/**
 * @throws Error with the line number if a string or a list is not closed, or if a row's number of values differs from the number
 * of columns, its columns are not known, or an INSERT has no VALUES
 */
export function rowsOfSql(
  text: string,
  columns: ReadonlyMap<string, (count: number) => readonly string[] | undefined>,
) {
  const rows = new Map<string, Row[]>([...columns.keys()].map((table) => [table, []]));
  const made = new Map<string, string[]>();
  const tokens = [...tokensOf(text)];
  const isWord = (at: number, ...words: string[]) => {
    const token = tokens[at];
    return token?.kind === "name" && !token.quoted && words.includes(token.text.toUpperCase());
  };
  const isSign = (at: number, sign: string) => {
    const token = tokens[at];
    return token?.kind === "sign" && token.text === sign;
  };
  const wrong = (at: number, what: string) =>
    new Error(`line ${lineOf(text, tokens[Math.min(at, tokens.length - 1)]?.at ?? 0)}: ${what}`);
  /** @returns the index of the bracket that closes the list that begins at `open` */
  const closed = (open: number): number => {
    let depth = 0;
    for (let at = open; at < tokens.length; at++) {
      if (isSign(at, "(")) depth++;
      else if (isSign(at, ")") && --depth === 0) return at;
    }
    throw wrong(open, "what opens here is not closed");
  };
  /** Splits the list from `open` to `close` at its commas. Each part is a pair of start and end index. */
  const parts = (open: number, close: number): [number, number][] => {
    const found: [number, number][] = [];
    let [begin, depth] = [open + 1, 0];
    for (let at = begin; at <= close; at++) {
      if (isSign(at, "(")) depth++;
      if (at === close || (depth === 0 && isSign(at, ","))) {
        found.push([begin, at]);
        begin = at + 1;
      } else if (isSign(at, ")")) depth--;
    }
    return found;
  };
  const nameAt = (at: number): string => {
    const token = tokens[at];
    return token?.kind === "name" ? token.text : "";
  };
  /** Reads a table's name, with or without its schema's name before it. @returns the table's name in lower case, and the index after it */
  const tableAt = (at: number): [string, number] =>
    isSign(at + 1, ".") ? [nameAt(at + 2).toLowerCase(), at + 3] : [nameAt(at).toLowerCase(), at + 1];

  for (let at = 0; at < tokens.length; ) {
    if (isWord(at, "CREATE") && isWord(at + 1, "TABLE")) {
      at += 2;
      while (isWord(at, "IF", "NOT", "EXISTS")) at++;
      const [table, open] = tableAt(at);
      at = open;
      if (!rows.has(table) || !isSign(open, "(")) continue;
      const close = closed(open);
      const keys = ["PRIMARY", "UNIQUE", "KEY", "INDEX", "CONSTRAINT", "FULLTEXT", "FOREIGN", "CHECK", "SPATIAL"];
      made.set(
        table,
        parts(open, close).flatMap(([from]) => (isWord(from, ...keys) ? [] : [nameAt(from)])),
      );
      at = close + 1;
    } else if (isWord(at, "INSERT", "REPLACE") && !isSign(at + 1, "(")) {
      do at++;
      while (isWord(at, "INTO", "IGNORE", "LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY"));
      const [table, end] = tableAt(at);
      at = end;
      const kept = rows.get(table);
      if (!kept) continue;
      let named: string[] | undefined;
      if (isSign(at, "(")) {
        const close = closed(at);
        named = parts(at, close).map(([from]) => nameAt(from));
        at = close + 1;
      }
      if (!isWord(at, "VALUES", "VALUE")) throw wrong(at, `an INSERT into ${table} has no VALUES`);
      for (at++; isSign(at, "("); ) {
        const close = closed(at);
        const values = parts(at, close).map(([from, to]) => {
          // A string literal may have a character set before it: _utf8mb4'…'.
          const token = tokens[nameAt(from).startsWith("_") ? ++from : from];
          // NULL, and expressions that only a database server can evaluate, become null.
          return to === from + 1 && token?.kind === "value" ? token.value : null;
        });
        const names = named ?? made.get(table) ?? columns.get(table)?.(values.length);
        if (names?.length !== values.length)
          throw wrong(at, `a row of ${table} has ${values.length} values, and its columns are not known`);
        kept.push(Object.fromEntries(names.map((name, place) => [name, values[place] ?? null])));
        at = close + 1;
        if (isSign(at, ",")) at++;
      }
    } else at++;
  }
  return rows;
}

function* tokensOf(text: string): Generator<Token> {
  for (let at = 0; at < text.length; ) {
    const match = (pattern: RegExp) => {
      pattern.lastIndex = at;
      return pattern.exec(text)?.[0];
    };
    const found = match(silent);
    if (found !== undefined) {
      at += found.length;
      continue;
    }
    const char = text[at] as string;
    if (char === "'" || char === '"' || char === "`") {
      const [value, end] = quotedAt(text, at, char);
      yield char === "`" ? { kind: "name", text: value, quoted: true, at } : { kind: "value", value, at };
      at = end;
      continue;
    }
    const digits = match(number);
    if (digits !== undefined) {
      yield { kind: "value", value: Number(digits), at };
      at += digits.length;
      continue;
    }
    const name = match(word);
    yield name === undefined ? { kind: "sign", text: char, at } : { kind: "name", text: name, quoted: false, at };
    at += name?.length ?? 1;
  }
}

/**
 * Reads a quoted text, in which a doubled quote means one quote and, except between backquotes, a backslash begins an escape.
 * @returns the text, and the index after it
 * @throws Error with the line number if the text is not closed
 */
function quotedAt(text: string, begin: number, quote: string): [string, number] {
  let value = "";
  for (let at = begin + 1; at < text.length; at++) {
    const char = text[at] as string;
    if (char === "\\" && quote !== "`") {
      const next = text[++at] ?? "";
      value += Object.hasOwn(escapes, next) ? escapes[next] : next;
    } else if (char !== quote) value += char;
    else if (text[at + 1] === quote) value += text[at++];
    else return [value, at + 1];
  }
  throw new Error(`line ${lineOf(text, begin)}: the text that begins with ${quote} is not closed`);
}

const lineOf = (text: string, at: number): number => text.slice(0, at).split("\n").length;
