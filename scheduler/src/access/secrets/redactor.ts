/**
 * Replaces secret values that handlers have read: in the log lines, results, errors and progress of runs, and in a process's own log.
 * Without side effects, except that it remembers the values.
 */
import type { Json } from "../../base/json.ts";
import { limits } from "../../base/limits.ts";
import type { Log } from "../../base/log.ts";
import type { Verdict } from "../../run/claim-store.ts";
import type { LogLine } from "../../run/run-record.ts";

/** If a text ends within a secret, the secret's beginning is redacted only if at least this many letters of it are there. */
const leastCut = 8;

/**
 * The secret values that handlers of this process have read. Finds each value as a whole, in its JSON, base64 and URL forms,
 * each of its lines that is at least as long as the shortest secret, and a value that the end of a text cuts off. As long as no
 * value has been read, texts are not searched.
 */
export class Redactor {
  /** The name of each secret value, and the forms in which the value may appear. */
  readonly #known = new Map<string, { name: string; forms: string[] }>();
  #names = new Map<string, string>();
  /** The search pattern; built at its first use after a value was added. */
  #made: RegExp | undefined;

  /**
   * Remembers a value. Only the `limits.secretsRemembered` values that were added last are remembered; adding a value again renews
   * it.
   */
  add(name: string, value: string): void {
    const known = this.#known.get(value);
    if (known) {
      this.#known.delete(value);
      this.#known.set(value, known);
      return;
    }
    this.#known.set(value, { name, forms: formsOf(value) });
    const [oldest] = this.#known.keys();
    if (this.#known.size > limits.secretsRemembered && oldest !== undefined) this.#known.delete(oldest);
    this.#made = undefined;
  }

  get active(): boolean {
    return this.#known.size > 0;
  }

  get #pattern(): RegExp | undefined {
    if (this.#made || this.#known.size === 0) return this.#made;
    this.#names = new Map([...this.#known.values()].flatMap(({ name, forms }) => forms.map((form) => [form, name])));
    const longestFirst = [...this.#names.keys()].sort((a, b) => b.length - a.length);
    this.#made = new RegExp(longestFirst.map((form) => form.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&")).join("|"), "g");
    return this.#made;
  }

  text(text: string): string {
    const pattern = this.#pattern;
    if (!pattern) return text;
    const whole = text.replace(pattern, (form) => shown(this.#names.get(form)));
    for (const [form, name] of this.#names) {
      const from = Math.max(0, whole.length - form.length + 1);
      for (
        let at = whole.indexOf(form.slice(0, leastCut), from);
        at >= 0;
        at = whole.indexOf(form.slice(0, leastCut), at + 1)
      )
        if (form.startsWith(whole.slice(at))) return whole.slice(0, at) + shown(name);
    }
    return whole;
  }

  /** Returns the JSON value with secrets redacted in its texts, numbers and property names. */
  value(value: Json): Json {
    if (!this.active) return value;
    if (typeof value === "string") return this.text(value);
    if (typeof value === "number") return this.#has(String(value)) ? this.text(String(value)) : value;
    if (Array.isArray(value)) return value.map((part) => this.value(part));
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([name, part]) => [this.text(name), this.value(part)]));
  }

  /** Redacts the values in a JSON text; the result is valid JSON. */
  json<Text extends string | null>(text: Text): Text {
    return text === null || !this.active ? text : (JSON.stringify(this.value(JSON.parse(text) as Json)) as Text);
  }

  /** True if the JSON text contains one of the secret values. */
  exposes(text: string | null): boolean {
    return text !== null && this.active && this.json(text) !== JSON.stringify(JSON.parse(text));
  }

  line(line: LogLine): LogLine {
    return this.active ? { ...line, message: this.text(line.message), fields: this.value(line.fields) } : line;
  }

  verdict(verdict: Verdict): Verdict {
    if (!this.active || verdict.kind === "released") return verdict;
    if (verdict.kind === "retry") return { ...verdict, error: this.json(verdict.error) };
    return { ...verdict, result: this.json(verdict.result), error: this.json(verdict.error) };
  }

  /** Wraps a log so that all its lines are redacted. */
  log(log: Log): Log {
    const at = (level: keyof Log) => (fields: object, message: string) =>
      this.active ? log[level](this.#fields(fields), this.text(message)) : log[level](fields, message);
    return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
  }

  #fields(fields: object): object {
    return Object.fromEntries(
      Object.entries(fields).map(([name, part]) => {
        if (typeof part === "string") return [name, this.text(part)];
        const text = typeof part === "object" && part !== null ? JSON.stringify(part) : undefined;
        return [name, text !== undefined && this.#has(text) ? JSON.parse(this.json(text)) : part];
      }),
    );
  }

  #has(text: string): boolean {
    return this.text(text) !== text;
  }
}

const shown = (name: string | undefined): string => `[secret ${name}]`;

function formsOf(value: string): string[] {
  const lines = value.split(/\r?\n/).map((line) => line.trim());
  const plain = [value, value.trim(), ...lines];
  const written = plain.flatMap((text) => [
    text,
    JSON.stringify(text).slice(1, -1),
    encodeURIComponent(text),
    Buffer.from(text).toString("base64").replace(/=+$/, ""),
    Buffer.from(text).toString("base64url"),
  ]);
  return [...new Set(written)].filter((text) => text.length >= limits.secretLeastLength);
}
