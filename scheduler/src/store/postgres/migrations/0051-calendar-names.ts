/** What files call the days of a calendar, by date: of its present version and of the one before, where it is known. */
export const calendarNames = (s: string) => `
alter table ${s}.calendar add column names jsonb not null default '{}';
`;
