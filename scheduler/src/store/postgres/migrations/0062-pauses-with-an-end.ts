/**
 * `pause_until_ms`: the time at which the pauses end that an operation makes. Older code ignores it: a task that older code pauses for such
 * an operation stays paused until it is resumed.
 */
export const pausesWithAnEnd = (s: string) => `
alter table ${s}.operation add column pause_until_ms bigint;
`;
