/**
 * Columns for the part of an open alarm that a silence holds back: `held` is the number of findings to be sent once no silence covers the
 * alarm, and `freed_ms` is when the silence ended. A message created after that time includes the alarm, although it was found earlier.
 */
export const alarmHeld = (s: string) => `
alter table ${s}.alarm add column held bigint not null default 0, add column freed_ms bigint;
`;
