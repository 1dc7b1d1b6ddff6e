/**
 * The number of attempts of a live run after which its handler put it off. Such an attempt is kept with the outcome `snoozed`. Workers and
 * servers of older code count them as tries.
 */
export const runSnoozes = (s: string) => `
alter table ${s}.run add column snoozes int not null default 0;
`;
