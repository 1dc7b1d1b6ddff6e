/** How long a process's event loop has been blocked, in ms, as its stand-in thread reports; null if it is not. See cluster/stand-in.ts. */
export const still = (s: string) => `
alter table ${s}.session add column still_ms int;
`;
