/**
 * How long a process's event loop has been blocked, in ms, as its stand-in thread reports; null if the event loop is not blocked. See
 * cluster/stand-in.ts.
 */
export const still = (s: string) => `
alter table ${s}.session add column still_ms int;
`;
