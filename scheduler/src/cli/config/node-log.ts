import pino from "pino";
import type { Log } from "../../base/log.ts";
import { isUnread } from "../readers.ts";
import type { Style } from "../screen/style.ts";
import { plain } from "../screen/text.ts";
import { clockText, localZone } from "../screen/times.ts";
import { type LogLevel, logLevels } from "./log-levels.ts";

/**
 * Creates a log that writes one JSON object per line to standard output. Each line is written before the call returns, so that a crash
 * loses none. From then on only the log writes to standard output; other output, such as that of handlers, is redirected to standard error.
 */
export function jsonLog(level: LogLevel): Log {
  process.stdout.write = process.stderr.write.bind(process.stderr) as typeof process.stdout.write;
  const output = pino.destination({ fd: 1, sync: true });
  // When the terminal or pipe is closed, stop logging, but do not end the node. pino itself stops quietly only for a pipe.
  output.on("error", (error) => {
    if (!isUnread(error, process.stdout.isTTY)) throw error;
    output.write = () => true;
  });
  return jsonLines(level, output);
}

export function jsonLines(level: LogLevel, output: pino.DestinationStream): Log {
  const options: pino.LoggerOptions = {
    level,
    base: null,
    messageKey: "message",
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (name) => ({ level: name }) },
  };
  return pino(options, output);
}

/** Creates a log of readable lines: `14:03:20.001  warn   the store is away  code=STORE_UNREACHABLE`. */
export function lineLog(least: LogLevel, style: Style, write: (line: string) => void): Log {
  const zone = localZone();
  const at = (level: LogLevel) => (fields: object, message: string) => {
    if (logLevels.indexOf(level) < logLevels.indexOf(least)) return;
    const paint = { debug: style.dim, info: (text: string) => text, warn: style.warning, error: style.bad }[level];
    const { error, hint, ...rest } = fields as { error?: unknown; hint?: unknown };
    const why = typeof error === "string" ? `: ${plain(error)}` : "";
    const when = style.dim(clockText(Date.now(), zone));
    write(`${when}  ${paint(level.padEnd(5))}  ${plain(message)}${why}${fieldsText(rest, style)}`);
    if (typeof hint === "string" && hint !== "") write(`${" ".repeat(21)}${style.dim(`hint: ${plain(hint)}`)}`);
  };
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

export function fieldsText(fields: object, style: Style): string {
  const parts = Object.entries(fields)
    .filter(([, value]) => value !== undefined && value !== null && value !== "")
    .map(([name, value]) => `${plain(name)}=${plain(typeof value === "string" ? value : JSON.stringify(value))}`);
  return parts.length === 0 ? "" : `  ${style.dim(parts.join(" "))}`;
}
