/**
 * Further properties of a process: its labels, the number of runs that it can execute at once, and the settings that other processes
 * compare with their own. For a process of an older version, the last two are null.
 */
export const sessionSettings = (s: string) => `
alter table ${s}.session add column labels jsonb not null default '{}';
alter table ${s}.session add column capacity int;
alter table ${s}.session add column settings jsonb;
`;
