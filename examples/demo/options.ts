import { parseArgs } from "node:util";

/** A failure that the user can correct; the demo prints its message without a stack. */
export class Trouble extends Error {
  override name = "Trouble";
}

export interface Options {
  /** The duration in seconds; null: until Ctrl-C. */
  seconds: number | null;
  json: boolean;
  /** The folder for the store; null: a temporary folder. */
  directory: string | null;
}

/** @throws Trouble for an unknown flag or an invalid value */
export function readOptions(args: string[]): Options {
  const { seconds, ...rest } = parse(args);
  if (seconds === undefined) return { ...rest, seconds: null };
  if (!/^\d{1,5}$/.test(seconds) || Number(seconds) < 4) {
    throw new Trouble(`--seconds is a whole number from 4 to 99999, not ${JSON.stringify(seconds)}.`);
  }
  return { ...rest, seconds: Number(seconds) };
}

function parse(args: string[]) {
  try {
    const { values } = parseArgs({
      args,
      options: {
        seconds: { type: "string" },
        json: { type: "boolean", default: false },
        directory: { type: "string" },
      },
    });
    const { seconds, json, directory } = values;
    return { seconds, json, directory: directory ?? null };
  } catch (error) {
    throw new Trouble(`${(error as Error).message}. \`npm run demo -- --help\` says what there is.`);
  }
}
