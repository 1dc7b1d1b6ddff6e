/** Translates errors of PostgreSQL, pg and Node into errors with a code, a message and a hint. */
import { CarillonError, type ErrorCode, isCarillonError, isStoreAway, messageOf } from "../../base/errors.ts";

interface Meaning {
  readonly code: ErrorCode;
  /** The beginning of the new message. The message of the server or of the driver follows it. */
  readonly says: string;
  readonly hint: string;
  /** Matches the SQL state, or the code of a Node error. */
  readonly states?: RegExp;
  /** Matches the message; used only if the error has no such state or code. */
  readonly texts?: RegExp;
}

/** The translations, in order; the first one that matches applies. */
const meanings: readonly Meaning[] = [
  {
    code: "STORE_TLS",
    says: "the store's certificate is for another host",
    hint: "Give the host in the URL by a name that the certificate has. If it has that name, somebody else may have answered.",
    states: /^ERR_TLS_CERT_ALTNAME_INVALID$/,
  },
  {
    code: "STORE_TLS",
    says: "the store's certificate cannot be verified",
    hint: "Give the certificate of its authority by sslrootcert=FILE in the URL. If that is given, somebody else may have answered.",
    states: /^(DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_\w+|CERT_\w+)$/,
  },
  {
    code: "STORE_TLS",
    says: "the store wants the certificate of a client",
    hint: "Give it and its key by sslcert=FILE and sslkey=FILE in the URL; its name is the user's, and its authority one that the server knows.",
    texts: /valid client certificate|certificate authentication failed for user/,
  },
  {
    code: "STORE_TLS",
    says: "no TLS connection to the store",
    hint: "Where the server offers none, turn it on there (ssl = on); in a network that nobody else reaches, sslmode=disable in the URL goes without.",
    states: /^(ERR_TLS_\w+|ERR_SSL_\w+|EPROTO)$/,
    texts: /does not support SSL|error establishing an SSL connection/,
  },
  {
    code: "STORE_TLS",
    says: "the store wants TLS",
    hint: "Add sslmode=verify-full to the URL, and sslrootcert=FILE where its authority is your own.",
    texts: /no pg_hba\.conf entry .*no encryption|SSL connection is required|connection is insecure|^SSL required$/i,
  },
  {
    // pg itself throws this error, without an SQL state.
    code: "STORE_REFUSED",
    says: "the store wants a password, and none was given",
    hint: "Give it in the URL, postgres://user:password@host:5432/database, or in the variable PGPASSWORD.",
    texts: /^SASL: .*password must be a (non-empty )?string$/,
  },
  // A pooler forwards its server's message under the SQL state of a broken connection.
  {
    code: "STORE_REFUSED",
    says: "the store refused the user or the password",
    hint: "Check both in the URL. In a password write @ as %40, : as %3A, / as %2F, # as %23, ? as %3F and % as %25.",
    states: /^28P01$/,
    texts: /^password authentication failed for /,
  },
  {
    code: "STORE_REFUSED",
    says: "the store has no such database",
    hint: "Correct the name at the end of the URL, or create the database: CREATE DATABASE name, or the program createdb.",
    states: /^3D000$/,
    // The second text is PgBouncer's, if it is configured with a list of databases.
    texts: /^database ".*" does not exist$|^no such database: /,
  },
  {
    code: "STORE_REFUSED",
    says: "the store refused",
    hint: "Check the URL's user and database, the user's rights on the schema, and pg_hba.conf.",
    states: /^(28\w{3}|42501)$/,
    texts: /^SASL: |^role ".*" does not exist$|^no such user|^login rejected$/,
  },
  {
    // PgBouncer sends this under the SQL state of a broken connection, but another try cannot succeed.
    code: "STORE_REFUSED",
    says: "the pooler refused what the store's URL sets",
    hint: "Take it out of the URL, and set it for the role: ALTER ROLE … SET …. A URL without a pooler may have it.",
    texts: /unsupported startup parameter/,
  },
  {
    code: "STORE_READ_ONLY",
    says: "the store accepts no writes",
    hint: "Give the URL of the primary server.",
    states: /^25006$/,
  },
  {
    code: "STORE_FULL",
    says: "the store's shared memory is full",
    hint: "It is /dev/shm of the database server and not its disk: give its container more (docker run --shm-size=256m), or set dynamic_shared_memory_type = 'mmap'.",
    texts: /shared memory segment .*No space left on device/,
  },
  {
    code: "STORE_FULL",
    says: "the store's disk is full",
    hint: "Free space on the database server.",
    states: /^53100$/,
  },
  {
    code: "STORE_BUSY",
    says: "the store has no connection left",
    hint: "Raise max_connections, or the limit of the role or the pooler; or start fewer processes, or give each fewer connections.",
    states: /^53300$/,
    texts: /too many (clients|connections)|no more connections allowed/i,
  },
  {
    // A deadlock, a serialisation failure, or a lock that was not available: PostgreSQL has certainly rolled the transaction back.
    code: "STORE_CONFLICT",
    says: "the store could not, for another transaction",
    hint: "Nothing was changed: try again.",
    states: /^(40001|40P01|55P03)$/,
  },
  {
    code: "STORE_RECOVERING",
    says: "the store is being recovered",
    hint: "Nothing was changed. Try again: it was promoted or restored, or crashed, and waits until the processes that were at work have told what it may lack.",
    states: /^CA001$/,
  },
  {
    // Matched by its text, because its SQL state is that of a check violation, which other errors share.
    code: "STORE_PARTITIONS",
    says: "the store has no place for this day's history",
    hint: "Run `carillon migrate` with the role that owns the schema, daily: it makes partitions ahead.",
    texts: /^no partition of relation /,
  },
  {
    // PgBouncer sends these if all its connections are in use, or if it cannot open one.
    code: "STORE_UNREACHABLE",
    says: "the pooler had no connection to the store in time",
    hint: "Check that the PostgreSQL behind the pooler runs; if it does, raise the pooler's default_pool_size, or start fewer processes.",
    texts: /^query_wait_timeout$|\(server_login_retry\)$/,
  },
  {
    code: "STORE_UNREACHABLE",
    says: "the store cannot be reached",
    hint: "Check that PostgreSQL runs and that the URL's host and port are right.",
    // 25P03: the server has ended a connection whose transaction was idle for too long. The last four codes: this process or machine has no
    // descriptor, port or memory left for a connection, but other processes may have.
    states:
      /^(ECONN\w+|EPIPE|ENOTFOUND|ENOENT|EAI_\w+|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|08\w{3}|25P03|57P0\w|53[24]\w\w|EMFILE|ENFILE|EADDRNOTAVAIL|ENOBUFS)$/,
    texts:
      /terminated unexpectedly|timeout exceeded when trying to connect|Connection terminated|not queryable|timeout expired/,
  },
];

const closed = /after calling end on the pool/;

/**
 * Returns a CarillonError for an error that one of the translations matches, for the use of a closed pool, and for an AggregateError; any
 * other error unchanged.
 */
export function storeError(error: unknown): unknown {
  if (error instanceof CarillonError || !(error instanceof Error)) return error;
  const state = (error as { code?: string }).code ?? "";
  const text = error instanceof AggregateError ? error.errors.map(messageOf).join("; ") : messageOf(error);
  if (closed.test(text))
    return new CarillonError("STOPPED", "the store was closed by this process before it was asked", {
      cause: error,
      hint: "Ask before `stop`, or make a new one.",
    });
  const fits = ({ states, texts }: Meaning) => states?.test(state) || texts?.test(text);
  const meaning =
    meanings.find(fits) ??
    (error instanceof AggregateError ? meanings.find(({ code }) => code === "STORE_UNREACHABLE") : undefined);
  if (!meaning) return error;
  return new CarillonError(meaning.code, `${meaning.says}: ${text}`, { cause: error, hint: meaning.hint });
}

/** Returns true if another try may succeed: the store is unavailable or recovering, or two transactions conflicted. */
export function isTransient(error: unknown): boolean {
  return isStoreAway(error) || isCarillonError(error, "STORE_CONFLICT") || isCarillonError(error, "STORE_RECOVERING");
}
