/**
 * Further properties of a process: its labels, its capacity for runs, and the settings that other processes compare with their own. For a
 * process of older code, capacity and settings are unknown.
 */
export const sessionSettings = (s: string) => `
alter table ${s}.session add column labels jsonb not null default '{}';
alter table ${s}.session add column capacity int;
alter table ${s}.session add column settings jsonb;
`;
