/** The index with which tasks are listed by their owner. */
export const taskOwners = (s: string) => `
create index task_owner on ${s}.task ((definition->>'owner'), name) where deleted_ms is null and definition->>'owner' is not null;
`;
