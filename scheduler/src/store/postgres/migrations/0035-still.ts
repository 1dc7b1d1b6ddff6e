/** For how long, in ms, a process's event loop has stood still, as its stand-in tells; null: it turns. See cluster/stand-in.ts. */
export const still = (s: string) => `
alter table ${s}.session add column still_ms int;
`;
