import { type Command, InvalidArgumentError } from "commander";
import type { ExitCode } from "../exit-codes.ts";
import type { Terminal } from "../screen/terminal.ts";
import type { CommonOptions } from "../store-choice.ts";

/** The parts of the program that a module uses to add its commands. */
export interface CommandParts {
  program: Command;
  /** Adds a command. @param how isDefault: the command runs when its family is called without a command */
  add: (parent: Command, usage: string, summary: string, example: string, how?: { isDefault?: boolean }) => Command;
  family: (name: string, summary: string) => Command;
  doing: <Options extends CommonOptions>(
    work: (args: string[], options: Options) => Promise<ExitCode>,
    how?: { configured?: boolean },
  ) => (...given: unknown[]) => Promise<void>;
  terminal: Terminal;
}

export const collect = (value: string, before: string[] = []) => [...before, value];

/** Refuses an empty text, because an unset variable in a script would otherwise silently choose another cluster. */
export const notEmpty = (text: string): string => {
  if (text !== "") return text;
  throw new InvalidArgumentError("It is empty: say which, or leave the option out.");
};

const collectPairs =
  (example: string) =>
  (text: string, before: [string, string][] = []): [string, string][] => {
    const [, name, value] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
    if (name === undefined || value === undefined)
      throw new InvalidArgumentError(`Give name=text, such as ${example}.`);
    return [...before, [name, value]];
  };
export const collectLabel = collectPairs("zone=eu-1");
export const collectRunLabel = collectPairs("customer=42");
export const collectHeader = collectPairs("x-github-event=push");
export const collectPart = collectPairs("timeout=5m");

export const wholeNumber = (least: number, most: number) => (text: string) => {
  const number = Number(text);
  if (!/^\d+$/.test(text) || number < least || number > most)
    throw new InvalidArgumentError(`Give a whole number from ${least} to ${most}.`);
  return number;
};

export const coordinationOption = (command: Command): Command =>
  command.option(
    "--coordination <URL>",
    "what else to coordinate by, zookeeper://host:2181/path (else CARILLON_COORDINATION, or the store alone)",
  );
