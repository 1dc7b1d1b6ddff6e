import { type Command, CommanderError } from "commander";
import fc from "fast-check";
import { commands } from "../../../scheduler/src/cli/program.ts";
import { Terminal } from "../../../scheduler/src/cli/screen/terminal.ts";
import { check, hold } from "../expected.ts";
import { oddNumbers, oddTexts, spoiltTexts } from "../mutation.ts";
import { target } from "../target.ts";

/** Returns the command line's parser without actions and output, because only the parsing is tested. */
export function quiet(): Command {
  const program = commands(new Terminal({ json: true, colour: false }), () => undefined);
  const silence = (command: Command): void => {
    command.configureOutput({ writeOut: () => undefined, writeErr: () => undefined, outputError: () => undefined });
    if (command.commands.length === 0) command.action(() => undefined);
    for (const sub of command.commands) silence(sub);
  };
  silence(program);
  return program;
}

const leaves = (command: Command, path: string[]): { path: string[]; flags: string[] }[] =>
  command.commands.length === 0
    ? [{ path, flags: command.options.flatMap(({ long, short }) => [long, short].filter((flag) => flag != null)) }]
    : command.commands.flatMap((sub) => leaves(sub, [...path, sub.name()]));
const known = leaves(quiet(), []);
const common = ["--store", "--directory", "--schema", "--json", "--no-color", "--help", "-h", "--version", "--"];

const words = fc.oneof(
  fc.constantFrom(
    "settle",
    "42",
    "5m",
    "name=text",
    "a=b=c",
    "2027-01-01T00:00:00Z",
    "127.0.0.1:7373",
    '{"a":1}',
    "-",
    "retry",
  ),
  fc.constantFrom(...oddTexts, ...oddNumbers),
  spoiltTexts(["zone=eu-1", "timeout=5m", "42", "postgres://u:p@h/db", "failed", "Europe/Berlin"]),
);

/** Generates one flag: usually a valid one, sometimes a mutated one. */
const flag = (flags: readonly string[]) =>
  fc.oneof(
    { weight: 5, arbitrary: fc.constantFrom(...flags, ...common) },
    { weight: 1, arbitrary: spoiltTexts([...flags, ...common], ["=", "-", "--no-"], 2) },
  );

export const commandLineTargets = [
  target({
    name: "command-line",
    share: 0.5,
    inputs: fc
      .constantFrom(...known)
      .chain(({ path, flags }) =>
        fc
          .array(fc.oneof(flag(flags), words), { maxLength: 7 })
          .chain((rest) => fc.constantFrom([...path, ...rest], [...rest, ...path], [...path.slice(0, -1), ...rest])),
      ),
    feed: async (args) => {
      try {
        await quiet().parseAsync(args, { from: "user" });
      } catch (error) {
        if (!(error instanceof CommanderError)) check(error);
        else hold(error.message.length > 0, () => `${error.code} has no message`);
      }
    },
  }),
];
