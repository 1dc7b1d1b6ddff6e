import { type ErrorCode, isCarillonError } from "../base/errors.ts";

/** The exit codes; docs/reference/cli.md lists them, and a test compares that page with this table. */
export const exitCodes = {
  ok: 0,
  failed: 1,
  usage: 2,
  notFound: 3,
  store: 4,
  problems: 5,
  bug: 70,
  interrupted: 130,
} as const;

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

/**
 * The exit code of `diff`, `apply --plan` and `migrate --plan` if there are pending changes, as that of diff(1). Wrong usage of
 * `diff` and `apply --plan` therefore gives 1 instead of 2.
 */
export const changesExit: ExitCode = 2;

/** The exit code of `check`, which monitors call, if it could not check anything, for example because of wrong usage. */
export const unknownExit: ExitCode = 3;

const notFound = new Set<ErrorCode>([
  "TASK_UNKNOWN",
  "RUN_UNKNOWN",
  "OPERATION_UNKNOWN",
  "CALENDAR_UNKNOWN",
  "GROUP_UNKNOWN",
  "KEY_UNKNOWN",
  "KEY_NAME_UNKNOWN",
  "NODE_UNKNOWN",
  "SECRET_UNKNOWN",
  "USER_UNKNOWN",
  "QUOTA_UNKNOWN",
  "TOKEN_UNKNOWN",
  "SIGN_IN_UNKNOWN",
  "SECOND_FACTOR_UNKNOWN",
  "ALARM_UNKNOWN",
  "HOOK_UNKNOWN",
  "CONSUMER_UNKNOWN",
]);
const failed = new Set<ErrorCode>([
  "TASK_STALE",
  "ALARM_RULE_EXISTS",
  "ALARM_RULE_STALE",
  "HOOK_STALE",
  "HOOK_REFUSED",
  "SYSLOG_FAILED",
  "PLAN_REFUSED",
  "CONFIRMATION_REFUSED",
  "RUN_STATE",
  "RUN_FAILED",
  "RUN_CANCELLED",
  "RUN_SKIPPED",
  "RESULT_TIMEOUT",
  "CURSOR_GONE",
  "RESULT_UNKEPT",
  "OPERATION_STATE",
  "CALENDAR_USED",
  "NODE_NAME_TAKEN",
  "NODE_ADDRESS_TAKEN",
  "SETTINGS_DIFFER",
  "CLOCK_BACK",
  "SESSION_LOST",
  "RELEASE_GONE",
  "WORKER_LOST",
  "FENCE_STALE",
  "STOPPED",
  "TIMEOUT",
  "CANCELLED",
  "PAYLOAD_STORE_FAILED",
  "CODEC_FAILED",
  "COMMAND_NOT_ALLOWED",
  "COMMAND_FAILED",
  "KEY_NAME_TAKEN",
  "KEY_FORBIDDEN",
  "KEY_THROTTLED",
  "CLAIM_FOREIGN",
  "LISTEN_FAILED",
  "OUTPUT_FAILED",
  "PACKAGE_NEEDED",
]);

/** Error codes of a server that is unreachable or refuses the caller. */
const server = new Set<ErrorCode>([
  "SERVER_UNREACHABLE",
  "SERVER_BUSY",
  "SIGN_IN_NEEDED",
  "SIGN_IN_REFUSED",
  "SIGN_IN_OLD",
  "SECOND_FACTOR_NEEDED",
  "SECOND_FACTOR_REQUIRED",
  "CODE_REFUSED",
  "ACCESS_DENIED",
  "PASSWORD_TEMPORARY",
  "TOO_MANY_ATTEMPTS",
  "QUOTA_EXCEEDED",
]);

/** Returns the exit code for an error with which a command ended. An error that is not a CarillonError is a bug. */
export function exitCodeOf(error: unknown): ExitCode {
  if (!isCarillonError(error)) return exitCodes.bug;
  if (notFound.has(error.code)) return exitCodes.notFound;
  if (/^(STORE|EMBEDDED|COORDINATION)_/.test(error.code) || server.has(error.code)) return exitCodes.store;
  // All other codes mean that the user's input is wrong: an option, a file, a schedule, a payload.
  return failed.has(error.code) ? exitCodes.failed : exitCodes.usage;
}
