import { likeOf, type OperationFilter } from "../operations.ts";

/** The numbers of the tasks that a filter names: parameters $1 to $3, as `taskValues` gives them. */
export const taskIdsSql = (s: string) => `select f.id from ${s}.task f
  where ($1::text is null or f.name = $1) and ($2::text is null or f.name like $2)
    and ($3::text is null or f.group_id = (select id from ${s}.worker_group where name = $3))`;

export const taskValues = ({ task, matching, group }: OperationFilter): unknown[] => [
  task ?? null,
  matching === undefined ? null : likeOf(matching),
  group ?? null,
];
