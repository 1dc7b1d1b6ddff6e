/**
 * The number of a live run's attempts that ended because the handler postponed the run. Such an attempt is stored with the outcome
 * `snoozed`. Workers and servers of older versions count it as a try.
 */
export const runSnoozes = (s: string) => `
alter table ${s}.run add column snoozes int not null default 0;
`;
