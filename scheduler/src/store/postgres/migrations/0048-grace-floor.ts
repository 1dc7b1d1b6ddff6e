/**
 * A floor for fences: at least the fence of every grace lock when the store last went back, including those that it may have lost. The next
 * fence of each lock is above it, also of a lock whose row was lost. Older code continues from the fence in the row.
 */
export const graceFloor = (s: string) => `
alter table ${s}.cluster add column grace_floor bigint not null default 0;
`;
