/**
 * When a source fires, as its own file states it. An importer passes the file's text, never the schedule that it made of that text: the
 * comparison reads the text anew, by rules of its own.
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
  /** `anchorMs` is one of the interval's times; without it the source counts from its own start. */
  | { dialect: "interval"; everyMs: number; anchorMs?: number | undefined }
  /** Go's `@every`, counted from the source's own start. */
  | { dialect: "@every"; text: string }
  /** Counted from the end of each run. */
  | { dialect: "delay"; everyMs: number }
  | { dialect: "once"; atMs: number }
  | { dialect: "by hand" };

/** Thrown for a text that no reader of this folder understands: then nothing can be compared. */
export class UnreadText extends Error {}
