/**
 * The properties that a rerun takes over from the ended run: the key for limits and hashing, its part of a split run, and its first cause.
 * They are null in most rows, where they take no room. Rows of runs that ended before this migration have none.
 */
export const runAgain = (s: string) => `
alter table ${s}.run_history add column limit_key text, add column shard int[], add column origin bigint;
`;
