import { version } from "./version.ts";

/** The interface of Carillon's log; pino implements it. */
export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

const nothing = () => undefined;
export const silentLog: Log = { debug: nothing, info: nothing, warn: nothing, error: nothing };

/** Replaces control characters by spaces, because they could begin another line or control a terminal. */
const onOneLine = (text: string): string => text.replaceAll(/[\p{Cc}\u2028\u2029]/gu, " ");

const say = (level: string) => (fields: object, message: string) => {
  const details = Object.keys(fields).length > 0 ? ` ${JSON.stringify(fields)}` : "";
  process.stderr.write(`carillon ${level}: ${onOneLine(message + details)}\n`);
};

/** The default log if a program passes none: prints warnings and errors to standard error. */
export const standardErrorLog: Log = { debug: nothing, info: nothing, warn: say("warning"), error: say("error") };

/**
 * The global under which OpenTelemetry's API for logs registers an application's provider, and the version of that contract.
 * The global is read here directly, because the API package does little more.
 */
const registered = Symbol.for("io.opentelemetry.js.api.logs");
const contract = 1;

/** The severity numbers of OpenTelemetry. */
const severities = { debug: 5, info: 9, warn: 13, error: 17 } as const;

type Level = keyof typeof severities;

interface LoggerProvider {
  getLogger(name: string, version: string): { emit(record: object): void };
}

let isEmitting = false;
let hasFailed = false;

/**
 * Passes a line to the provider that the application has set up; without a provider, does nothing. If a log processor of the
 * application throws, the line is not exported, and Node prints a warning at the first such error. A line that a log processor
 * itself logs through Carillon is not passed on.
 */
export function emitLog(level: Level, body: string, attributes: () => object): void {
  const provider = (globalThis as { [registered]?: (asked: number) => LoggerProvider | undefined })[registered];
  if (provider === undefined || isEmitting) return;
  isEmitting = true;
  try {
    const severity = { severityNumber: severities[level], severityText: level.toUpperCase() };
    provider(contract)
      ?.getLogger("carillon", version)
      .emit({ ...severity, body, attributes: attributes() });
  } catch (error) {
    if (!hasFailed)
      process.emitWarning(`a log processor of this program threw, so the line is not exported: ${String(error)}`);
    hasFailed = true;
  } finally {
    isEmitting = false;
  }
}

/** Wraps a log so that its lines, except those of the level `debug`, also go to the application's OpenTelemetry provider. */
export function exported(log: Log): Log {
  const at = (level: Level) => (fields: object, message: string) => {
    emitLog(level, message, () => fields);
    log[level](fields, message);
  };
  return {
    debug: (fields, message) => log.debug(fields, message),
    info: at("info"),
    warn: at("warn"),
    error: at("error"),
  };
}
