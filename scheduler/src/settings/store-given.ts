import { CarillonError } from "../base/errors.ts";

/** Usual names of environment variables that contain the store's URL, most common first. */
const usualNames = ["DATABASE_URL", "CARILLON_STORE", "POSTGRES_URL", "PG_URL"];

const askEmbedded = 'store: "embedded" asks for a private PostgreSQL in this folder.';

/**
 * Refuses an omitted `store` in production, unless `directory` is set: otherwise, an unset variable would give each machine a private
 * database of its own. Elsewhere, an omitted `store` means this private database.
 * @throws OPTION_INVALID also for `store: undefined`
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

/** Refuses `store: undefined`, which is probably a mistake, even where `store` may be omitted. @throws OPTION_INVALID */
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
 * Returns the names of the variables that contain a postgres:// or postgresql:// URL, usual names first. CARILLON_LISTEN_URL is left out,
 * because its connection receives notifications and is not the store's URL.
 */
function variablesWithStore(environment: NodeJS.ProcessEnv): string[] {
  const names = Object.keys(environment)
    .filter((name) => name !== "CARILLON_LISTEN_URL" && /^postgres(ql)?:\/\//.test(environment[name] ?? ""))
    .sort();
  return [...usualNames.filter((name) => names.includes(name)), ...names.filter((name) => !usualNames.includes(name))];
}
