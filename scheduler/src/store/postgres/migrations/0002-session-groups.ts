/** What each process runs, so that a task whose group nobody serves can be told apart from one that only waits. */
export const sessionGroups = (s: string) => `
alter table ${s}.session add column groups text[] not null default '{}';
`;
