export const errorsEn = {
  "errors.title": "Errors by reason",
  "errors.since": "since",
  "errors.forgotten": "The reason is no longer kept.",
  "errors.moreTasks": "and {n} more",
  "errors.first": "first",
  "errors.last": "last",
  "errors.broughtBy": "began with release {release}",
  "errors.trend": "{before} failures in the first half of the time, {after} in the second",
} as const;
