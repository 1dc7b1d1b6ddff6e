import { limits } from "./limits.ts";

/**
 * All error codes with their descriptions. Every failure that a caller can expect is a CarillonError with a stable code for programs, a
 * message that names the problem, and, if the message is not enough, a `hint` that says what to do. Bugs throw other errors.
 * docs/reference/errors.md lists the codes; a test compares that page with this table.
 */
export const errorCodes = {
  CRON_INVALID: "The cron expression cannot be parsed.",
  CRON_NEVER: "The cron expression names a time that never comes, such as 30 February.",
  RRULE_INVALID: "The recurrence rule (RFC 5545) cannot be read, or contradicts itself.",
  RRULE_NEVER: "The recurrence rule has no occurrence.",
  SCHEDULE_INVALID: "The schedule's options are wrong or contradict each other.",
  SLOT_TOO_FAR: "The next slot lies beyond the last year Carillon plans for.",
  ZONE_UNKNOWN: "The time zone is not one that this runtime knows.",
  DURATION_INVALID: "The duration is not a positive number of milliseconds or a text such as 15m.",
  OPTION_INVALID: "An option has a value it cannot have.",
  TASK_INVALID: "The task's definition is wrong.",
  TASK_DUPLICATE:
    "Two definitions in one process, bundle or request use the same name; or a task of a former crontab goes on beside its new ones.",
  TASK_UNKNOWN: "No task has this name.",
  TASK_STALE: "The task was changed by someone else since it was read.",
  TASK_NAME_TAKEN: "A task has this name already.",
  PLAN_REFUSED: "The plan has a step that cannot be carried out, so none of it is begun.",
  VERSION_UNKNOWN: "There is no such version.",
  RUN_UNKNOWN: "No run has this number.",
  RUN_STATE: "The run is in a state in which this cannot be done.",
  RUN_FAILED: "The run whose result was waited for failed.",
  RUN_CANCELLED: "The run whose result was waited for was cancelled.",
  RUN_SKIPPED: "The run whose result was waited for was skipped.",
  RESULT_TIMEOUT: "The run whose result was waited for did not end in time.",
  CONSUMER_UNKNOWN: "There is no such named consumer of events.",
  CURSOR_GONE: "Not all events behind this cursor are there any more.",
  RESULT_UNKEPT: "The run succeeded, and its task keeps no results.",
  FILTER_EMPTY: "No filter was given, so everything would be touched.",
  CONFIRMATION_NEEDED: "So many would be touched that it must be confirmed.",
  CONFIRMATION_REFUSED: "The confirmation is unknown, used or too old, or was given for another act or another state.",
  OPERATION_UNKNOWN: "No operation has this number.",
  OPERATION_STATE: "The operation is in a state in which this cannot be done.",
  GROUP_UNKNOWN: "No group has this name.",
  CALENDAR_INVALID: "The calendar cannot be read, or holds more than a calendar may.",
  CALENDAR_UNKNOWN: "No calendar has this name.",
  CALENDAR_STALE: "The calendar was changed by someone else since it was read.",
  CALENDAR_SHRINKS: "The calendar would lose more than half of its coming holidays, or all of them.",
  CALENDAR_USED: "The calendar is used by a task and cannot be removed.",
  PAYLOAD_INVALID: "The payload does not match the task's schema.",
  PAYLOAD_TOO_LARGE: "The payload is larger than 256 KiB of JSON.",
  PAYLOAD_NOT_JSON: "The payload cannot be written as JSON.",
  PAYLOAD_STORE_FAILED: "A payload or a result that is kept outside the store could not be written or read.",
  CODEC_FAILED: "A payload or a result could not be encoded or decoded.",
  COMMAND_NOT_ALLOWED: "The worker's own configuration does not allow this program.",
  COMMAND_FAILED: "The command ended with an exit code other than 0, or by a signal.",
  HTTP_NOT_ALLOWED: "The worker's own configuration does not allow this URL.",
  HTTP_REFUSED: "The receiver answered with a status that another try would not change.",
  HTTP_FAILED: "The receiver could not be reached, or answered with a status that is worth another try.",
  HANDLER_CRASHED: "The thread or process of an isolated handler ended by itself.",
  HANDLER_MEMORY: "An isolated handler needed more memory than it may have.",
  ALARM_UNKNOWN: "There is no such alarm, rule, silence, channel or message.",
  ALARM_RULE_EXISTS: "There is an alarm rule of this name already.",
  ALARM_RULE_STALE: "The alarm rule was changed by someone else since it was read.",
  HOOK_UNKNOWN: "No incoming webhook has this name.",
  HOOK_STALE: "The incoming webhook was changed by someone else since it was read.",
  HOOK_REFUSED: "There is no such incoming webhook, or the request is not signed by its secret.",
  MAIL_FAILED: "The mail server did not take a mail.",
  SYSLOG_FAILED: "The syslog server could not be reached, or closed the connection before it had read everything.",
  CRONTAB_INVALID: "A line of the crontab cannot be imported.",
  FILE_INVALID: "The file cannot be read, or does not export what is needed.",
  ENQUEUE_TIMEOUT: "The store did not answer an enqueue in time.",
  STORE_UNREACHABLE: "The store cannot be reached.",
  STORE_REFUSED: "The store refused the connection's credentials or permissions.",
  STORE_NEWER: "The database was migrated by a newer Carillon than this one.",
  STORE_OLDER: "The database has not been migrated to what this Carillon needs.",
  STORE_UNSUPPORTED: "The server is too old, or lacks something that Carillon needs.",
  STORE_READ_ONLY: "The store accepts no writes: it is a replica, or its folder cannot be written.",
  STORE_MISSING: "The embedded store is not where it should be, and no empty one is made in its place.",
  STORE_FULL: "The store's disk is full.",
  STORE_TLS: "No TLS connection to the store can be made, or the store wants one.",
  STORE_BUSY: "The store has no connection left for this process.",
  STORE_RECOVERING:
    "The store was promoted, restored, or crashed, and takes no decisions until it is told what it may lack.",
  STORE_FOREIGN: "The schema has something that is not Carillon's, under a name that Carillon needs.",
  STORE_PARTITIONS: "Partitions for history are missing, and this process's role may not make them.",
  STORE_IN_USE: "Processes are at work with the store, and this must be done before any of them starts.",
  STORE_NOT_EMPTY: "The schema that a dump is to be loaded into has something in it.",
  STORE_CONFLICT: "Another transaction was in the way; nothing was changed.",
  EMBEDDED_UNAVAILABLE: "No PostgreSQL binaries for this platform were found.",
  EMBEDDED_FAILED: "The embedded PostgreSQL could not be started.",
  CLOCK_BACK: "Cluster time is behind what it has been, and this node does not start then.",
  COORDINATION_UNREACHABLE: "The coordination service cannot be reached.",
  COORDINATION_REFUSED: "The coordination service refused the credentials or permissions.",
  COORDINATION_FOREIGN: "The coordination service holds another cluster, or data that Carillon did not write.",
  COORDINATION_UNSUPPORTED: "The coordination service is too old, or is set up in a way that cannot be relied on.",
  COORDINATION_DIFFERS: "The cluster's live nodes use another coordination service.",
  SETTINGS_DIFFER: "This process's settings must not stand beside those of a live node.",
  NODE_NAME_TAKEN: "A live node already uses this name.",
  NODE_UNKNOWN: "No process has this name, and none had it lately.",
  NODE_ADDRESS_TAKEN: "A live process is already reached at this address.",
  SESSION_LOST: "This process's session ended: it was silent for too long, or another took its place.",
  RELEASE_GONE: 'No worker of the release with which the run began is left, and its task says `onReleaseGone: "fail"`.',
  WORKER_LOST: "The worker fell silent while it had the run, so what the run did is not known.",
  LOCK_BUSY: "The lock was not to be had in the time given.",
  LOCK_NOT_HELD: "The lock is not held any more: it was released, or lost.",
  LOCK_SIZE_DIFFERS: "The semaphore is in use with another number of permits.",
  KEY_UNKNOWN: "The worker key is missing, unknown, revoked or expired.",
  KEY_FORBIDDEN: "The worker key does not allow this.",
  KEY_THROTTLED: "Too many worker keys from this address were wrong.",
  KEY_SESSIONS: "The worker key has as many sessions as one may have.",
  KEY_NAME_TAKEN: "A worker key has this name already.",
  KEY_NAME_UNKNOWN: "No worker key has this name.",
  SIGN_IN_NEEDED: "The request does not say who asks, or by something that holds no more.",
  SIGN_IN_REFUSED: "The name or the password is wrong.",
  SIGN_IN_OLD: "The sign-in began too long ago for this.",
  SECOND_FACTOR_NEEDED: "The password is right, and a code of the second factor is needed beside it.",
  CODE_REFUSED: "The code of the second factor is wrong, has expired or was used before.",
  SECOND_FACTOR_REQUIRED: "This user must have a second factor, and has none yet.",
  SECOND_FACTOR_TAKEN: "The user has a second factor already.",
  SECOND_FACTOR_UNKNOWN: "The user has no second factor.",
  PROVIDER_UNREACHABLE: "The sign-in provider does not answer.",
  TOO_MANY_ATTEMPTS: "Too many attempts to sign in failed, or too many tokens from this address were wrong.",
  ACCESS_DENIED: "Whoever asks may not do this.",
  ORIGIN_REFUSED: "A page from elsewhere asked for a change.",
  HOST_REFUSED: "The request names a host that is not this server's.",
  USER_UNKNOWN: "No user has this name.",
  USER_NAME_TAKEN: "A user has this name already.",
  USER_STALE: "The user was changed by someone else since it was read.",
  ADMIN_NEEDED: "It would leave nobody who may manage users.",
  PASSWORD_WEAK: "The password is too easy to guess.",
  PASSWORD_TEMPORARY: "The password was handed over and is to be replaced first.",
  TOKEN_UNKNOWN: "No token has this name.",
  SIGN_IN_UNKNOWN: "No sign-in of this user has this number.",
  TOKEN_NAME_TAKEN: "A token of this user has this name already.",
  SECRET_UNKNOWN: "No secret has this name, or the version's value is destroyed.",
  SECRET_INVALID: "The secret's name or value cannot be so, or what is stored of it was changed.",
  SECRET_FORBIDDEN: "The secret is not for this task.",
  SECRET_EXPOSED: "What is to be kept has a secret's value in it.",
  SECRET_KEY_MISSING: "This process has no key that seals or opens the secret.",
  SECRET_KEY_OPEN:
    "Other users of this machine may read or change a file of keys or of a password, or one of settings with a secret in it.",
  CLAIM_FOREIGN: "The run is claimed by another session.",
  REQUEST_INVALID: "The request is not what the contract says.",
  ROUTE_UNKNOWN: "The API has no such route.",
  METHOD_UNKNOWN: "The API has this path, with other methods.",
  PRECONDITION_NEEDED: "The change does not say which version it is made from.",
  IDEMPOTENCY_MISMATCH: "The idempotency key was used for another request.",
  IDEMPOTENCY_BUSY: "The first request with this idempotency key is still under way.",
  ANSWER_NOT_KEPT: "It was done, but its answer was a secret that is kept nowhere.",
  STREAMS_TAKEN: "The user has as many streams of this server as one may have.",
  QUOTA_UNKNOWN: "The namespace, user or worker key has no quota of its own.",
  QUOTA_EXCEEDED: "The user, the namespace or the worker key has enqueued as much as its quota allows.",
  SERVER_BUSY: "The server has as much of this to do as it takes.",
  REQUEST_TOO_LARGE: "The request is larger than the server reads.",
  SERVER_UNREACHABLE: "No Carillon server can be reached.",
  LISTEN_FAILED: "The server cannot listen at this address.",
  PACKAGE_NEEDED: "This needs a package of npm that is not installed.",
  STORE_NEEDED: "Only a process that has the store can do this.",
  FENCE_STALE: "The write carries an old claim or term and was refused.",
  STOPPED: "This Carillon has been stopped.",
  TIMEOUT: "The work did not finish in its time.",
  CANCELLED: "The work was cancelled.",
  PROFILE_UNKNOWN: "No profile has this name.",
  CONFIG_INVALID: "A file or a variable that the command line is configured by cannot be read, or says what cannot be.",
  USAGE: "The command line is wrong.",
  OUTPUT_FAILED: "What a command says could not be written.",
} as const;

export type ErrorCode = keyof typeof errorCodes;

/** Shortens a message, because it may quote a refused text of any length. */
const clipped = (text: string): string =>
  text.length <= limits.errorTextLength ? text : `${text.slice(0, limits.errorTextLength - 1)}…`;

export class CarillonError extends Error {
  override readonly name = "CarillonError";
  readonly code: ErrorCode;
  /** Advice to the user about the error; "" if the message is enough. */
  readonly hint: string;
  /**
   * In an error that a handler throws: the minimum delay in ms before the next attempt, if the task's retry policy allows one;
   * limited by `maxDelay`. Infinity: no further attempt. Undefined: the policy decides. In an error of a refused request: the time
   * in ms after which the request can be sent again.
   */
  readonly retryAfterMs: number | undefined;
  /** The path of the wrong part of the given value, such as "retry.attempts" or "tasks[3].schedule"; "": no single part. */
  readonly path: string;

  constructor(
    code: ErrorCode,
    message: string,
    options: { hint?: string; cause?: unknown; retryAfterMs?: number | undefined; path?: string } = {},
  ) {
    super(clipped(message), options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.hint = clipped(options.hint ?? "");
    this.retryAfterMs = options.retryAfterMs;
    this.path = clipped(options.path ?? "");
  }
}

/** Runs `read`, which checks the part `outer` of a larger value, and prefixes the path of its errors with `outer`. */
export function within<Result>(outer: string, read: () => Result): Result {
  try {
    return read();
  } catch (error) {
    if (!isCarillonError(error)) throw error;
    const { code, message, hint, cause, retryAfterMs, path, stack } = error;
    const moved = new CarillonError(code, message, { hint, cause, retryAfterMs, path: pathTo(outer, path) });
    if (stack !== undefined) moved.stack = stack;
    throw moved;
  }
}

/** Joins two parts of a path: "tasks" and "[3]" → "tasks[3]"; "retry" and "attempts" → "retry.attempts". */
export const pathTo = (outer: string, inner: string): string =>
  outer === "" || inner === "" || inner.startsWith("[") ? outer + inner : `${outer}.${inner}`;

/** Splits a path: "blackout[2].from" → ["blackout", "2", "from"]. */
export const stepsOf = (path: string): string[] => path.split(/[.[\]]+/).filter((step) => step !== "");

export function isCarillonError(error: unknown, code?: ErrorCode): error is CarillonError {
  return error instanceof CarillonError && (code === undefined || error.code === code);
}

/** Returns the message of any thrown value, even if it is not an Error or throws when it is read. */
export function messageOf(thrown: unknown): string {
  try {
    if (thrown instanceof Error) return String(thrown.message || thrown.name);
    if (typeof thrown === "string") return thrown;
    return JSON.stringify(thrown) ?? String(thrown);
  } catch {
    // The value is circular, has no prototype, or throws when it is read.
    return describe(thrown);
  }
}

function describe(thrown: unknown): string {
  try {
    return String(thrown);
  } catch {
    // Everything about the value throws, so only its type can be named.
    return `an unreadable ${typeof thrown}`;
  }
}

const storeAway: ReadonlySet<string> = new Set(["STORE_UNREACHABLE", "STORE_READ_ONLY", "STORE_FULL", "STORE_BUSY"]);

/** True if the store is unreachable or accepts no writes at the moment; callers then repeat requests that are safe to repeat. */
export function isStoreAway(error: unknown): boolean {
  return isCarillonError(error) && storeAway.has(error.code);
}
