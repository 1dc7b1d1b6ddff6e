/**
 * The types that describe when a source fires, in the source's own notation. An importer copies the text from the source's file, not from
 * the schedule that it created, because the comparison parses that text again by its own rules.
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
  /** `anchorMs` (epoch ms) is one of the interval's times. Without it, the source counts from the moment at which it was started. */
  | { dialect: "interval"; everyMs: number; anchorMs?: number | undefined }
  /** Go's `@every`, counted from the moment at which the source was started. */
  | { dialect: "@every"; text: string }
  /** A fixed delay: each run starts `everyMs` after the end of the run before it. */
  | { dialect: "delay"; everyMs: number }
  | { dialect: "once"; atMs: number }
  | { dialect: "by hand" };

/** Thrown for a text that no reader in this folder understands, so that nothing can be compared. */
export class UnreadText extends Error {}
