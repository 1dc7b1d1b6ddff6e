/** The groups that each process runs. They distinguish a task whose group no process serves from a task that only waits. */
export const sessionGroups = (s: string) => `
alter table ${s}.session add column groups text[] not null default '{}';
`;
