/** The part of a task's definition that describes its program. This module is pure; executors/command/ executes the program. */
import { count, inner, isObject, type Kind, object, text, wrong } from "./kinds/kinds.ts";

/** A program and its arguments. A worker executes it only if the worker's own configuration allows it. */
export interface CommandSpec {
  argv: string[];
  env?: Record<string, string>;
  /** The working folder; default "/". "~" is the home of the account under which the command runs, or "/" if that account has none. */
  cwd?: string;
  stdin?: string;
  /** The account under which the command should run, as given in a crontab. */
  user?: string;
  /** Exit codes that count as success; default [0]. */
  okExitCodes?: number[];
  /**
   * Exit codes after which the retry policy applies; default: all codes that are not success. After any other code the run fails at once.
   */
  retryExitCodes?: number[];
}

const mostWords = 1_000;
const mostCodes = 256;
/** One argument. Linux allows at most 128 KiB, including the NUL at its end. */
const word = text(131_071);

const argv: Kind<string[]> = {
  shape: { is: "list", of: word.shape, most: mostWords },
  hint: 'For example { argv: ["/usr/bin/true"] }.',
  read(given, place) {
    const words = Array.isArray(given) ? Array.from(given) : [];
    if (words.length === 0 || words[0] === "" || !words.every((one) => typeof one === "string" && !one.includes("\0")))
      throw wrong(place, " must be a list of texts, the program first", this.hint);
    if (words.length > mostWords) throw wrong(place, ` has ${words.length} words`, `Give at most ${mostWords}.`);
    return words.map((one, at) => word.read(one, inner(place, `[${at}]`)));
  },
  write: (kept) => kept,
};

const env: Kind<Record<string, string>> = {
  shape: { is: "texts" },
  hint: 'For example { env: { LANG: "C" } }.',
  read(given, place) {
    if (isObject(given) && Object.values(given).every((value) => typeof value === "string"))
      return { ...given } as Record<string, string>;
    throw wrong(place, " must hold texts", this.hint);
  },
  write: (kept) => kept,
};

const code = count(0, 255);
const exitCodes: Kind<number[]> = {
  shape: { is: "list", of: code.shape, most: mostCodes },
  hint: "They are 0 to 255, for example [0, 3].",
  read(given, place) {
    const isCode = (one: unknown) => Number.isInteger(one) && (one as number) >= 0 && (one as number) <= 255;
    if (Array.isArray(given) && given.length <= mostCodes && Array.from(given).every(isCode)) return [...given];
    throw wrong(place, " must be a list of exit codes", this.hint);
  },
  write: (kept) => kept,
};

export const commandKind = object<CommandSpec>(
  {
    argv: { kind: argv, required: true, description: "The program and its arguments; no shell reads them." },
    env: { kind: env, description: "Variables of its environment, beside those that the worker gives." },
    cwd: {
      kind: text(4_096),
      description: "The folder in which it runs; `~` is the home of its account. Default: `/`.",
    },
    stdin: { kind: text(), description: "The text on its standard input." },
    user: { kind: text(100), description: "The account that the command belongs to, as a crontab names it." },
    okExitCodes: { kind: exitCodes, description: "Exit codes that are a success; default: 0 alone." },
    retryExitCodes: {
      kind: exitCodes,
      description: "Exit codes that `retry` tries again; default: all that are no success. All others fail at once.",
    },
  },
  { example: '{ argv: ["/usr/bin/true"] }' },
);
