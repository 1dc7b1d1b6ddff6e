/**
 * When a source fires, in the source's own notation. An importer passes the file's text, never the schedule that it made of that text,
 * because the comparison interprets the text again by rules of its own.
 */
export type CronDialect =
  | "vixie"
  | "kubernetes"
  | "cron-parser"
  | "quartz"
  | "fugit"
  | "eventbridge"
  | "celery"
  | "apscheduler"
  | "jenkins"
  | "dkron";

export type SourceTimes =
  | { dialect: CronDialect | "systemd"; text: string; zone: string }
  /** `anchorMs` is one of the interval's times; without it the source counts from when it was started. */
  | { dialect: "interval"; everyMs: number; anchorMs?: number | undefined }
  /** Go's `@every`, counted from when the source was started. */
  | { dialect: "@every"; text: string }
  /** The delay counts from the end of each run. */
  | { dialect: "delay"; everyMs: number }
  | { dialect: "once"; atMs: number }
  | { dialect: "by hand" };

/** Thrown for a text that no reader in this folder understands, so that nothing can be compared. */
export class UnreadText extends Error {}
