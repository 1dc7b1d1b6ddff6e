/**
 * `paused_failures`: the failures in a row for which a task was paused by itself; null: somebody paused it. `resumed_ms`: failures of before
 * count no more. An older node leaves such a task running, and after a resume by it earlier failures count again.
 */
export const pauseAfter = (s: string) => `
alter table ${s}.task add column paused_failures int, add column resumed_ms bigint;
`;
