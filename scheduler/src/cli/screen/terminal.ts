import { isCarillonError, messageOf } from "../../base/errors.ts";
import { type Style, styleOf, wantsColour } from "./style.ts";
import { type Cell, type Column, tableLines } from "./table.ts";
import { plain, wrap } from "./text.ts";

export interface TerminalOptions {
  json: boolean;
  colour: boolean;
}

/** Prints a command's results: lines and tables for people, JSON for programs. */
export class Terminal {
  readonly json: boolean;
  readonly style: Style;
  readonly errorStyle: Style;

  constructor({ json, colour }: TerminalOptions) {
    this.json = json;
    this.style = styleOf(!json && wantsColour(process.stdout, process.env, colour));
    this.errorStyle = styleOf(wantsColour(process.stderr, process.env, colour));
  }

  /** The width in columns; infinite if standard output is not a terminal, so that lines for grep are not cut. */
  get width(): number {
    return process.stdout.isTTY ? process.stdout.columns || 80 : Number.POSITIVE_INFINITY;
  }

  line(text = ""): void {
    process.stdout.write(`${text}\n`);
  }

  /** Prints a remark for people on standard error, separate from the result. Prints nothing with --json. */
  aside(text: string): void {
    if (this.json) return;
    const width = process.stderr.isTTY ? process.stderr.columns || 80 : Number.POSITIVE_INFINITY;
    process.stderr.write(`${wrap(text, width).join("\n")}\n`);
  }

  object(value: unknown): void {
    process.stdout.write(`${JSON.stringify(value, null, process.stdout.isTTY ? 2 : undefined)}\n`);
  }

  /** Prints JSON: with several named items one array of all values, otherwise each value as an object of its own. */
  objects(values: readonly object[], named: number): void {
    if (named > 1) this.object(values);
    else for (const value of values) this.object(value);
  }

  table(columns: readonly Column[], rows: readonly (readonly Cell[])[], indent = ""): void {
    const { style } = this;
    for (const line of tableLines(columns, rows, { width: this.width - indent.length, style }))
      this.line(indent + line);
  }

  /** Prints one item: a line with its name and state, then one line per property. Empty properties are left out. */
  card(name: string, state: string, properties: readonly (readonly [title: string, text: string])[]): void {
    const { style } = this;
    const width = Math.max(0, ...properties.map(([title]) => title.length));
    this.line(`${style.title(plain(name))}  ${style.dim(plain(state))}`);
    this.line();
    for (const [title, text] of properties)
      if (text !== "") this.line(`  ${style.dim(title.padEnd(width))}  ${plain(text)}`);
  }

  /** Prints an error on standard error: an expected failure with a hint and a link, an unexpected error with its stack. */
  failure(error: unknown): void {
    process.stderr.write(`${failureText(error, this.json, this.errorStyle)}\n`);
  }
}

export function failureText(error: unknown, json: boolean, style: Style): string {
  if (isCarillonError(error)) {
    const { code, message, hint, path } = error;
    if (json) return JSON.stringify({ code, message, hint, ...(path === "" ? {} : { path }) });
    const lines = [`${style.bad(`carillon: ${code}:`)} ${message.split("\n").map(plain).join("\n  ")}`];
    // The path is printed only if the message does not contain it already.
    if (!message.includes(path)) lines.push(`  ${style.dim("at:")} ${plain(path)}`);
    if (hint !== "") lines.push(`  ${style.dim("hint:")} ${plain(hint)}`);
    // A wrong command line is explained by the command's --help, so no page of the documentation is linked.
    if (code !== "USAGE") lines.push(`  ${style.dim("more:")} docs/reference/errors.md#${code.toLowerCase()}`);
    return lines.join("\n");
  }
  const message = messageOf(error);
  if (json)
    return JSON.stringify({
      code: "BUG",
      message,
      hint: "This is a bug in Carillon. Please report it.",
      stack: (error as Error)?.stack,
    });
  const stack = error instanceof Error ? (error.stack ?? message) : message;
  return `${style.bad("carillon: BUG:")} ${stack}\n  ${style.dim("hint:")} This is a bug in Carillon. Please report it with what is above.`;
}
