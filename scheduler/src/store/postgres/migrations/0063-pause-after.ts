/**
 * `paused_failures`: the failures in a row that paused a task automatically; null: a person paused it. `resumed_ms`: failures before this
 * time do not count any more. An older node does not pause such a task, and after its resume earlier failures count again.
 */
export const pauseAfter = (s: string) => `
alter table ${s}.task add column paused_failures int, add column resumed_ms bigint;
`;
