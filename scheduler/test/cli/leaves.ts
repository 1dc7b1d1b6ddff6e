/** Lists the program's commands, and builds command lines for each. */

import type { Command, Option } from "commander";
import { commands } from "../../src/cli/program.ts";
import { Terminal } from "../../src/cli/screen/terminal.ts";
import { importsFiles, lines, ofNoServer } from "./command-lines.ts";

/** Options whose values are not varied, because other values would write files on this machine or never end. */
const notVaried = new Set(["--output", "--follow", "--wait"]);

/** A command of the program that has an action of its own. */
export interface Leaf {
  /** The command's full name, such as "tasks show". */
  name: string;
  command: Command;
}

export function leaves(): Leaf[] {
  const program = commands(new Terminal({ json: true, colour: false }), () => undefined);
  const found: Leaf[] = [];
  const walk = (command: Command, before: string) => {
    for (const one of command.commands) {
      const name = before === "" ? one.name() : `${before} ${one.name()}`;
      // A command without an action only groups its subcommands.
      if ((one as unknown as { _actionHandler: unknown })._actionHandler) found.push({ name, command: one });
      walk(one, name);
    }
  };
  walk(program, "");
  return found;
}

export const ofServer = (): Leaf[] => leaves().filter(({ name }) => !(name in ofNoServer) && !importsFiles.test(name));

/** Values that a user might give by mistake. */
export const oddValues: readonly string[] = [
  "",
  "..",
  ".",
  "two words",
  "a/b?c#d%2Fé",
  "__proto__",
  "0",
  "-1",
  "1e9",
  "n".repeat(250),
  "r".repeat(1_100),
];

export const wordsOf = (line: string): string[] =>
  line.split(" ").flatMap((word) => (word === "" ? [] : [word.replaceAll("~", " ")]));

/** Returns the words with each placeholder, such as {good}, replaced by its value in `known`. */
export const placedIn = (words: readonly string[], known: Readonly<Record<string, unknown>>): string[] =>
  words.map((word) => word.replace(/\{(\w+)\}/g, (whole, name: string) => String(known[name] ?? whole)));

/** Returns variants of a command's first line: with each of its flags, and with odd values for each argument and option. */
export function varied({ name, command }: Leaf): string[][] {
  const words = wordsOf(lines[name]?.[0] ?? "");
  const made: string[][] = [];
  const first = words.findIndex((word) => word.startsWith("-"));
  const given = first < 0 ? words.length : first;
  for (let at = 0; at < command.registeredArguments.length; at++)
    for (const value of oddValues) {
      // A word that begins with a dash is parsed as an option, which is refused before any request.
      if (value.startsWith("-")) continue;
      made.push([...words.slice(0, Math.min(at, given)), value, ...words.slice(at < given ? at + 1 : given)]);
    }
  for (const option of command.options) {
    const flag = option.long as string;
    if (notVaried.has(flag)) continue;
    if (!takesValue(option)) made.push([...words, flag]);
    else for (const value of oddValues) made.push([...words, `${flag}=${value}`]);
  }
  return made.map((odd) => [...name.split(" "), ...odd]);
}

const takesValue = ({ required, optional }: Option): boolean => required || optional;
