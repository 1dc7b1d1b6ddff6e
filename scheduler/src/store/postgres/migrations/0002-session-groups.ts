/** The groups that each process serves. They show whether a task's runs only wait, or whether no process serves the task's group. */
export const sessionGroups = (s: string) => `
alter table ${s}.session add column groups text[] not null default '{}';
`;
