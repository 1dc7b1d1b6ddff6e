/** The command field of a crontab line, split as cron splits it before it starts a shell. */
export interface CommandField {
  command: string;
  /** The text after the first unescaped %, always with a newline at its end. */
  stdin?: string;
}

/**
 * Splits the field at the first unescaped `%` into the command and its standard input. In the input, every further `%` is a newline; `\%`
 * is a percent sign in both parts. A backslash before any other character is kept. The parts differ in one case, as in Vixie's cron: `\\%`
 * ends the command, but gives `\%` in the input.
 */
export function splitPercent(field: string): CommandField {
  let command = "";
  let escaped = false;
  for (let at = 0; at < field.length; at++) {
    const char = field[at] as string;
    if (escaped) {
      command = char === "%" ? `${command.slice(0, -1)}%` : command + char;
      escaped = false;
    } else if (char === "%") {
      const rest = field.slice(at + 1);
      return rest === "" ? { command } : { command, stdin: readStdin(rest) };
    } else {
      command += char;
      escaped = char === "\\";
    }
  }
  return { command };
}

function readStdin(rest: string): string {
  let input = "";
  let escaped = false;
  for (const char of rest) {
    if (escaped && char !== "%") input += "\\";
    const read: string = !escaped && char === "%" ? "\n" : char;
    escaped = read === "\\";
    if (!escaped) input += read;
  }
  if (escaped) input += "\\";
  return input.endsWith("\n") ? input : `${input}\n`;
}
