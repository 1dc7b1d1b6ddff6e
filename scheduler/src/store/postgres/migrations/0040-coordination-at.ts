/**
 * Where the service is that the cluster coordinates by: the service's id, a blank, and its address. A text that begins with another id is
 * an older service's, because older code changes `coordination` alone. So a service that was wiped is told from another one that is empty.
 */
export const coordinationAt = (s: string) => `
alter table ${s}.cluster add column coordination_at text;
`;
