/** Where Carillon says what happens; pino fits it. */
export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

const nothing = () => undefined;
export const silentLog: Log = { debug: nothing, info: nothing, warn: nothing, error: nothing };

/** Nothing in it begins another line, or steers a terminal. */
const onOneLine = (text: string): string => text.replaceAll(/[\p{Cc}\u2028\u2029]/gu, " ");

const say = (level: string) => (fields: object, message: string) => {
  const details = Object.keys(fields).length > 0 ? ` ${JSON.stringify(fields)}` : "";
  process.stderr.write(`carillon ${level}: ${onOneLine(message + details)}\n`);
};

/** What a program that gave no log hears: warnings and errors, on standard error. */
export const standardErrorLog: Log = { debug: nothing, info: nothing, warn: say("warning"), error: say("error") };
