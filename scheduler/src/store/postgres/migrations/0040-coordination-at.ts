/**
 * `coordination_at` holds the id of the cluster's coordination service, a space, and the service's address. If it begins with another id
 * than `coordination`, it is outdated, because older code changes only `coordination`. The address distinguishes a service that was wiped
 * from another, empty service.
 */
export const coordinationAt = (s: string) => `
alter table ${s}.cluster add column coordination_at text;
`;
