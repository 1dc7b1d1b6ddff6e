/** The interface of Carillon's log; pino implements it. */
export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

const nothing = () => undefined;
export const silentLog: Log = { debug: nothing, info: nothing, warn: nothing, error: nothing };

/** The text on one line: without control characters, which could begin another line or control a terminal. */
const onOneLine = (text: string): string => text.replaceAll(/[\p{Cc}\u2028\u2029]/gu, " ");

const say = (level: string) => (fields: object, message: string) => {
  const details = Object.keys(fields).length > 0 ? ` ${JSON.stringify(fields)}` : "";
  process.stderr.write(`carillon ${level}: ${onOneLine(message + details)}\n`);
};

/** The default log, if a program gives none: warnings and errors on standard error. */
export const standardErrorLog: Log = { debug: nothing, info: nothing, warn: say("warning"), error: say("error") };
