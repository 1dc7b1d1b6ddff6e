import { CarillonError } from "../base/errors.ts";

/** The usual names of a variable with the store's URL, the most usual name first. */
const usualNames = ["DATABASE_URL", "CARILLON_STORE", "POSTGRES_URL", "PG_URL"];

const askEmbedded = 'store: "embedded" asks for a private PostgreSQL in this folder.';

/**
 * Refuses an omitted store in production: without this check, a variable that is not set would give each machine a private database.
 * Elsewhere, omitting `store` means that private database. @throws OPTION_INVALID
 */
export function checkStoreGiven(options: { store?: string; directory?: string }): void {
  if (options.store !== undefined) return;
  checkStoreDefined(options);
  if (options.directory !== undefined || process.env.NODE_ENV !== "production") return;
  throw new CarillonError("OPTION_INVALID", "no store was given, and in production (NODE_ENV) none is made unasked", {
    hint: `Give a postgres:// URL, and look whether the variable it comes from is set. ${askEmbedded}`,
    path: "store",
  });
}

/** `store: undefined` is probably a mistake, so it is refused even where `store` may be omitted. @throws OPTION_INVALID */
export function checkStoreDefined(options: { store?: string }): void {
  if (options.store !== undefined || !Object.hasOwn(options, "store")) return;
  const [name] = variablesWithStore(process.env);
  throw new CarillonError("OPTION_INVALID", "store is undefined", {
    hint:
      name === undefined
        ? `Most likely it is read from an environment variable that is not set. Give a postgres:// URL; ${askEmbedded}`
        : `${name} is set and holds a postgres:// URL: perhaps process.env.${name} was meant. Otherwise, ${askEmbedded}`,
    path: "store",
  });
}

/**
 * Names of the variables that hold a postgres:// URL, usual names first. CARILLON_LISTEN_URL is left out: it is for signals, not for the
 * store.
 */
function variablesWithStore(environment: NodeJS.ProcessEnv): string[] {
  const names = Object.keys(environment)
    .filter((name) => name !== "CARILLON_LISTEN_URL" && /^postgres(ql)?:\/\//.test(environment[name] ?? ""))
    .sort();
  return [...usualNames.filter((name) => names.includes(name)), ...names.filter((name) => !usualNames.includes(name))];
}
