/**
 * The place of the cluster's coordination service: the service's id, a blank, and its address. A text that begins with another id is an
 * older service's, because older code changes only `coordination`. So a service that was wiped can be distinguished from another, empty
 * one.
 */
export const coordinationAt = (s: string) => `
alter table ${s}.cluster add column coordination_at text;
`;
