/**
 * A lower bound for fences: at least the fence of every grace lock when the store last went back in time, including fences that it may have
 * lost. The next fence of each lock is above this bound, even if the lock's row was lost. Older code continues from the fence in the row.
 */
export const graceFloor = (s: string) => `
alter table ${s}.cluster add column grace_floor bigint not null default 0;
`;
