/** The names of a calendar's days, by date, as files define them: for its present version, and for the previous one if they are known. */
export const calendarNames = (s: string) => `
alter table ${s}.calendar add column names jsonb not null default '{}';
`;
