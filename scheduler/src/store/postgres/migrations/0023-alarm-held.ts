/**
 * The part of an open alarm that a silence holds back: the amount found, which is to be sent once no silence holds, and the time when it
 * came free. A message after that time names it, though it was found before the message's time.
 */
export const alarmHeld = (s: string) => `
alter table ${s}.alarm add column held bigint not null default 0, add column freed_ms bigint;
`;
