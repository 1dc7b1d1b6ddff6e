/**
 * The properties that a rerun copies from the ended run: the key for limits and hashing, the part of a split run, and the first cause. They
 * are null in most rows, where they take no space, and in rows of runs that ended before this migration.
 */
export const runAgain = (s: string) => `
alter table ${s}.run_history add column limit_key text, add column shard int[], add column origin bigint;
`;
