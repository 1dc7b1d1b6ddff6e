/** The groups that each process serves. They distinguish a task whose group no process serves from a task whose runs only wait. */
export const sessionGroups = (s: string) => `
alter table ${s}.session add column groups text[] not null default '{}';
`;
