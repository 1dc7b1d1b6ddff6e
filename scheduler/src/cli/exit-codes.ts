import { type ErrorCode, isCarillonError } from "../base/errors.ts";

/** docs/cli.md lists the codes, and a test compares the two. */
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
 * The exit code of `diff`, `apply --plan` and `migrate --plan` when there is something to do, as that of diff(1); wrong usage of the first
 * two is 1.
 */
export const changesExit: ExitCode = 2;

/** The exit code of `check`, which speaks to monitors, if it could not look at all, such as after wrong usage. */
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
]);
const failed = new Set<ErrorCode>([
  "TASK_STALE",
  "ALARM_RULE_EXISTS",
  "ALARM_RULE_STALE",
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

/** Error codes for a server that cannot be reached, or that refuses the caller. */
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

/** The exit code of a command that ended with an error. An error without a Carillon code is a bug. */
export function exitCodeOf(error: unknown): ExitCode {
  if (!isCarillonError(error)) return exitCodes.bug;
  if (notFound.has(error.code)) return exitCodes.notFound;
  if (/^(STORE|EMBEDDED|COORDINATION)_/.test(error.code) || server.has(error.code)) return exitCodes.store;
  // Every other code means that the input was wrong: an option, a file, a schedule, a payload.
  return failed.has(error.code) ? exitCodes.failed : exitCodes.usage;
}
