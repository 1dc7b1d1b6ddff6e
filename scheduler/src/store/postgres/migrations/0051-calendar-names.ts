/** The names that files give to the days of a calendar, by date: of its present version, and of the one before if known. */
export const calendarNames = (s: string) => `
alter table ${s}.calendar add column names jsonb not null default '{}';
`;
