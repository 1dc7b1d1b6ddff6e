/**
 * `paused_failures`: how many failures in a row paused a task automatically; null if a user paused it. `resumed_ms`: failures before this
 * time are no longer counted. A node of an older version pauses no task because of failures, and after it resumes a task, earlier failures
 * count again.
 */
export const pauseAfter = (s: string) => `
alter table ${s}.task add column paused_failures int, add column resumed_ms bigint;
`;
