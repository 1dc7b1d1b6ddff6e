/** The time in ms for which a process's event loop has stood still, as its stand-in reports; null: it turns. See cluster/stand-in.ts. */
export const still = (s: string) => `
alter table ${s}.session add column still_ms int;
`;
