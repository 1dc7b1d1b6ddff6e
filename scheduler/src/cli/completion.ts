import type { Command, Option } from "commander";
import type { CommonOptions } from "./store-choice.ts";

/** The kinds of names, other than command names, that can be completed. */
export type Named = "tasks" | "calendars" | "groups" | "keys" | "nodes" | "profiles";

export interface Candidate {
  value: string;
  description: string;
}

/** The result of a completion: the candidates for the last word of a command line. */
export interface Completion {
  candidates: Candidate[];
  /** The kind of names from the cluster that are candidates too; null: none. */
  named: Named | null;
  files: boolean;
  /** The text with which all candidates start. */
  beginning: string;
  /** The text before each candidate, such as "--task=", if the option's name and its value are one word. */
  before: string;
  /** The options on the line that select the cluster. */
  options: Pick<CommonOptions, "store" | "server" | "profile" | "directory" | "schema">;
}

/** For an argument called `name`: the kind of names that it takes, by the name of its command or of that command's family. */
const families: Readonly<Record<string, Named>> = {
  tasks: "tasks",
  export: "tasks",
  calendars: "calendars",
  groups: "groups",
  keys: "keys",
  nodes: "nodes",
  profiles: "profiles",
};
/** The kind of names that an option takes, by its long name. */
const values: Readonly<Record<string, Named>> = {
  "--task": "tasks",
  "--group": "groups",
  "--profile": "profiles",
};
const takesFile = /\b(?:FILE|PATH)\b/;

/**
 * Computes the completion from commander's own tree, so that it covers every command and option. Without side effects.
 * @param words the last word is the one being typed
 */
export function completionOf(program: Command, words: readonly string[]): Completion {
  const typed = words.at(-1) ?? "";
  const found: Completion = {
    candidates: [],
    named: null,
    files: false,
    beginning: typed,
    before: "",
    options: {},
  };
  let command = program;
  const path: Command[] = [program];
  let places = 0;
  let waiting: Option | undefined;
  let onlyWords = false;
  for (const word of words.slice(0, -1)) {
    if (waiting) {
      keep(found, waiting, word);
      waiting = undefined;
    } else if (word === "--") onlyWords = true;
    else if (!onlyWords && word.startsWith("-")) {
      const [name = "", value] = split(word);
      const option = optionsOf(path).find(({ long, short }) => name === long || name === short);
      if (option && value !== undefined) keep(found, option, value);
      else if (option?.required) waiting = option;
    } else {
      const next = places === 0 ? command.commands.find((one) => one.name() === word) : undefined;
      if (next) {
        command = next;
        path.push(next);
      } else places++;
    }
  }
  if (waiting) return ofValue(found, waiting, typed);
  if (!onlyWords && typed.startsWith("-")) {
    const [name = "", value] = split(typed);
    const option = value === undefined ? undefined : optionsOf(path).find(({ long }) => name === long);
    if (option) return { ...ofValue(found, option, value ?? ""), before: `${name}=` };
    const shown = optionsOf(path).flatMap(({ long, description }) => (long ? [{ value: long, description }] : []));
    return { ...found, candidates: begun([...shown, { value: "--help", description: "show what it does" }], typed) };
  }
  const subcommands =
    places === 0 ? command.commands.map((one) => ({ value: one.name(), description: brief(one.description()) })) : [];
  const argument =
    command.registeredArguments[places] ?? command.registeredArguments.findLast(({ variadic }) => variadic);
  const choices = (argument?.argChoices ?? []).map((value) => ({ value, description: "" }));
  const named =
    argument && /^name$/.test(argument.name()) ? path.map((one) => families[one.name()]).find(Boolean) : undefined;
  return {
    ...found,
    candidates: begun([...subcommands, ...choices], typed),
    named: named ?? null,
    files: /^file$/.test(argument?.name() ?? ""),
  };
}

const split = (word: string): [name: string, value: string | undefined] => {
  const at = word.startsWith("--") ? word.indexOf("=") : -1;
  return at < 0 ? [word, undefined] : [word.slice(0, at), word.slice(at + 1)];
};

const begun = (candidates: Candidate[], beginning: string) =>
  candidates.filter(({ value }) => value.startsWith(beginning));

/** Returns the visible options, those of the innermost command first. */
const optionsOf = (path: readonly Command[]): Option[] =>
  [...path].reverse().flatMap((command) => command.options.filter(({ hidden }) => !hidden));

/** Returns the first clause of a description, to be shown beside a name. */
const brief = (text: string) => (text.split(/\.(?:\s|$)|[:;]/)[0] ?? "").trim();

function ofValue(found: Completion, { long, flags, argChoices }: Option, typed: string): Completion {
  const candidates = begun(
    (argChoices ?? []).map((value) => ({ value, description: "" })),
    typed,
  );
  const named = values[long ?? ""] ?? null;
  return {
    ...found,
    beginning: typed,
    candidates,
    named,
    files: named === null && !argChoices && takesFile.test(flags),
  };
}

function keep({ options }: Completion, { long }: Option, value: string): void {
  if (long === "--server") options.server = [...(options.server ?? []), value];
  else if (long === "--store" || long === "--profile" || long === "--directory" || long === "--schema")
    options[long.slice(2) as "store"] = value;
}

/**
 * Splits a line into words as a shell does. The last word may be unfinished: inside a quotation mark that is not closed, or empty after a
 * space.
 */
export function wordsOf(line: string): string[] {
  const words: string[] = [];
  let word: string | undefined;
  let quote = "";
  for (let at = 0; at < line.length; at++) {
    const character = line[at] as string;
    if (quote === "" && /\s/.test(character)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else if (quote === "" && /['"]/.test(character)) {
      quote = character;
      word ??= "";
    } else if (character === quote) quote = "";
    else if (character === "\\" && quote !== "'") word = (word ?? "") + (line[++at] ?? "");
    else word = (word ?? "") + character;
  }
  return [...words, word ?? ""];
}
