/**
 * At least the fence of every grace lock when the store last went back, and of those that it may have lost: the next fence of each is above
 * it, also of a lock whose row was lost. Older code goes on from the fence in the row.
 */
export const graceFloor = (s: string) => `
alter table ${s}.cluster add column grace_floor bigint not null default 0;
`;
