/** The interface of Carillon's log, which a pino logger implements. */
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
