/**
 * What a run that is made again of an ended one takes over: the key that it is limited and hashed by, which part of a split run it
 * was, and what began it all. Null in most rows, where they take no room; those that ended before stay without.
 */
export const runAgain = (s: string) => `
alter table ${s}.run_history add column limit_key text, add column shard int[], add column origin bigint;
`;
