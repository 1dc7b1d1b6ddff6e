/**
 * An operation that pauses may give its pauses an end. Older code leaves it out: what it pauses of such an operation lasts until it is
 * resumed.
 */
export const pausesWithAnEnd = (s: string) => `
alter table ${s}.operation add column pause_until_ms bigint;
`;
