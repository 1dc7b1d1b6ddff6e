/** Every bound of the project, with its unit in its name. */
export const limits = {
  /** One payload or result, as UTF-8 JSON. */
  payloadBytes: 256 * 1024,
  taskNameLength: 200,
  groupNameLength: 100,
  keyLength: 200,
  /** A run whose worker was lost this often is taken to be the cause, and fails. */
  workerLosses: 5,
  cronTextLength: 256,
  /** A slot is due at most this much after its nominal time by jitter. */
  jitterMs: 86_400_000,
  /** No slot is planned after this year: a cron that next fires later ends with an error. */
  lastYear: 2200,
} as const;
