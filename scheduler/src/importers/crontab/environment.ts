import { refuse } from "./fields.ts";

export interface EnvironmentLine {
  name: string;
  value: string;
}

const assignment = /^\s*(?:"([^"]*)"|'([^']*)'|([^\s="']+))\s*=\s*(.*?)\s*$/s;

/**
 * Reads `NAME = value`, where both parts may be quoted. Values are taken literally, because cron expands nothing in them.
 * @returns null if the line has another form, and so can only be an entry
 * @throws CRONTAB_INVALID
 */
export function readEnvironment(line: string): EnvironmentLine | null {
  const found = assignment.exec(line);
  if (found === null) return null;
  const name = found[1] ?? found[2] ?? found[3] ?? "";
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) {
    throw refuse(
      `${JSON.stringify(name)} cannot be the name of an environment variable`,
      "A name has letters, digits and _, and begins with no digit.",
    );
  }
  return { name, value: unquote(name, found[4] as string) };
}

function unquote(name: string, value: string): string {
  const quote = value[0];
  if (quote !== '"' && quote !== "'") return value;
  const end = value.indexOf(quote, 1);
  if (end === value.length - 1 && end > 0) return value.slice(1, -1);
  throw refuse(
    end < 0 ? `the quote before the value of ${name} is not closed` : `there is text after the quoted value of ${name}`,
    "Close the quote at the end of the line, or leave the quotes out.",
  );
}
