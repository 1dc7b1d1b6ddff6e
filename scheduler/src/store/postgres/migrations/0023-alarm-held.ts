/**
 * What a silence holds back of an open alarm: how much was found, and is to be told once no silence holds; and when it came free,
 * for a message then names it, though it was found before the message's time.
 */
export const alarmHeld = (s: string) => `
alter table ${s}.alarm add column held bigint not null default 0, add column freed_ms bigint;
`;
