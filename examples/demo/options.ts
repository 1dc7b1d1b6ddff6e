import { parseArgs } from "node:util";

/** A failure the reader can mend: shown as its message, without a stack. */
export class Trouble extends Error {
  override name = "Trouble";
}

export interface Options {
  /** null: until Ctrl-C. */
  seconds: number | null;
  json: boolean;
  /** null: a throw-away folder. */
  directory: string | null;
  help: boolean;
}

export const usage = `Carillon's demo: two processes on an embedded PostgreSQL, one of them killed with -9 half-way.

  npm run demo                            until Ctrl-C; the kill comes after 15 s
  npm run demo -- --seconds 20            ends by itself
  npm run demo -- --seconds 20 --json     the figures as one JSON line on stdout, the live view on stderr
  npm run demo -- --directory FOLDER      keeps the store there, instead of in a folder that is removed at the end

Exit code: 0 all accounted for; 1 something was lost or doubled, or it could not be checked.`;

/** @throws Trouble */
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
        help: { type: "boolean", default: false },
      },
    });
    const { seconds, json, directory, help } = values;
    return { seconds, json, directory: directory ?? null, help };
  } catch (error) {
    throw new Trouble(`${(error as Error).message}\n\n${usage}`);
  }
}
