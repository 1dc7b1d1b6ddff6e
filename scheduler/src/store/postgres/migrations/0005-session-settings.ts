/**
 * What else a process tells of itself: labels, how many runs it takes at once, and the settings that the others compare
 * with theirs. Of a process that is older than this, capacity and settings are not known.
 */
export const sessionSettings = (s: string) => `
alter table ${s}.session add column labels jsonb not null default '{}';
alter table ${s}.session add column capacity int;
alter table ${s}.session add column settings jsonb;
`;
