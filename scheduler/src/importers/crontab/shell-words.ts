/**
 * Splits a command line into words by the rules of the POSIX shell. If the line contains an expansion, a chain, a redirection or
 * a command of the shell itself, the result names that feature instead, because a partial imitation of a shell would run some
 * commands wrongly.
 */
import { refuse } from "./fields.ts";

export type SplitCommand =
  | { argv: string[]; env: Record<string, string>; comment: string }
  /** A description of the shell feature that the command line uses. */
  | { needsShell: string };

const builtins = new Set(
  `! . : [ [[ { } alias bg bind break builtin caller case cd command compgen continue coproc declare dirs disown do done
  elif else enable esac eval exec exit export fc fg fi for function getopts hash help if in let local logout mapfile
  popd pushd read readarray readonly return select set shift shopt source suspend test then time times trap type typeset
  ulimit umask unalias unset until wait while`.split(/\s+/),
);

const syntax: Record<string, string> = {
  "|": "a pipe or a chain (|)",
  "&": "a chain or the background (&)",
  ";": "several commands (;)",
  "<": "a redirection (<)",
  ">": "a redirection (>)",
  $: "an expansion ($)",
  "`": "a command substitution (`)",
  "*": "a file pattern (*)",
  "?": "a file pattern (?)",
  "[": "a file pattern ([)",
  "(": "a subshell or function (()",
  ")": "a subshell or function ())",
};

interface Word {
  value: string;
  /** The number of characters of `value` before its first quote or backslash. */
  plain: number;
}

/** @throws CRONTAB_INVALID when a quote is not closed, or when there is no program */
export function splitCommand(text: string): SplitCommand {
  // Keywords are checked first, because "if" is a clearer reason for the user than the first special character in the line.
  const first = /^\s*(\S+)/.exec(text)?.[1] ?? "";
  if (builtins.has(first)) return { needsShell: `${first}, which the shell does itself` };
  const read = readWords(text);
  if ("needsShell" in read) return read;
  const env = Object.create(null) as Record<string, string>;
  const argv: string[] = [];
  for (const { value, plain } of read.words) {
    const assigned = argv.length === 0 ? /^([A-Za-z_][A-Za-z0-9_]*)=/.exec(value.slice(0, plain)) : null;
    if (assigned === null) argv.push(value);
    else env[assigned[1] as string] = value.slice((assigned[0] as string).length);
  }
  const program = argv[0];
  if (program === undefined || program === "") {
    throw refuse("there is no program to run", "Write a command after the time fields.");
  }
  if (builtins.has(program)) return { needsShell: `${program}, which the shell does itself` };
  // The built-in echo of /bin/sh interprets backslashes, while the program echo does not.
  if (program === "echo" && argv.some((word) => word.includes("\\"))) return { needsShell: "echo with backslashes" };
  return { argv, env, comment: read.comment };
}

function readWords(text: string): { words: Word[]; comment: string } | { needsShell: string } {
  const words: Word[] = [];
  let word: Word | null = null;
  let at = 0;
  while (at < text.length) {
    const char = text[at] as string;
    if (char === " " || char === "\t" || char === "\n") {
      if (word !== null) words.push(word);
      word = null;
      at++;
      continue;
    }
    if (word === null) {
      if (char === "#") return { words, comment: text.slice(at + 1).trim() };
      word = { value: "", plain: Number.POSITIVE_INFINITY };
    }
    const last = text[at - 1];
    if (char === "~" && (word.value === "" || last === "=" || last === ":")) return { needsShell: "a home folder (~)" };
    if (char === "{" && text[at + 1] !== "}") return { needsShell: "a group or brace expansion ({)" };
    const reason = syntax[char];
    if (reason !== undefined) return { needsShell: reason };
    if (char === "'" || char === '"' || char === "\\") {
      word.plain = Math.min(word.plain, word.value.length);
      const quoted = char === "'" ? single(text, at) : char === '"' ? double(text, at) : backslash(text, at);
      if ("needsShell" in quoted) return quoted;
      word.value += quoted.value;
      at = quoted.end;
    } else {
      word.value += char;
      at++;
    }
  }
  if (word !== null) words.push(word);
  return { words, comment: "" };
}

type Quoted = { value: string; end: number } | { needsShell: string };

function single(text: string, at: number): Quoted {
  const end = text.indexOf("'", at + 1);
  if (end < 0) throw notClosed("'");
  return { value: text.slice(at + 1, end), end: end + 1 };
}

function double(text: string, at: number): Quoted {
  let value = "";
  for (let i = at + 1; i < text.length; i++) {
    const char = text[i] as string;
    if (char === '"') return { value, end: i + 1 };
    if (char === "$" || char === "`") return { needsShell: syntax[char] as string };
    if (char === "\\" && '$`"\\'.includes(text[i + 1] ?? "x")) i++;
    value += text[i];
  }
  throw notClosed('"');
}

function backslash(text: string, at: number): Quoted {
  return { value: text[at + 1] ?? "\\", end: at + 2 };
}

function notClosed(quote: string): Error {
  return refuse(`the quote ${quote} is not closed`, "A shell would refuse it too: close the quote.");
}
