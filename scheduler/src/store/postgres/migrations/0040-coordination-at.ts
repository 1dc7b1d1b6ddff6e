/**
 * The cluster's coordination service: its id, a space, and its address. A value that begins with another id than `coordination` is
 * outdated, because older code changes only `coordination`. With the address, a service that was wiped can be distinguished from another,
 * empty service.
 */
export const coordinationAt = (s: string) => `
alter table ${s}.cluster add column coordination_at text;
`;
