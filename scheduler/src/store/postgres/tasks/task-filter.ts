import pg from "pg";
import { defaultNamespace } from "../../../base/namespace.ts";
import { likeOf, type OperationFilter } from "../../../run/operations.ts";

/** SQL: the namespace of a task's name. */
export const namespaceSql = (name: string): string =>
  `(case when strpos(${name}, '/') = 0 then '${defaultNamespace}' else split_part(${name}, '/', 1) end)`;

/** SQL condition: the name is in one of these namespaces (an array of texts), or the array is null. */
export const inNamespacesSql = (name: string, namespaces: string): string =>
  `(${namespaces} is null or ${namespaceSql(name)} = any(${namespaces}))`;

/**
 * SQL: selects the numbers of the tasks that match a filter. The parameters $1 to $3 are the values from `taskValues`. $2 is JSON with the
 * pattern of the name and the namespaces in which the name may be.
 */
export const taskIdsSql = (s: string) => `select f.id from ${s}.task f
  where ($1::text is null or f.name = $1)
    and ($2::text is null or (f.name like coalesce($2::jsonb->>'like', '%')
      and ${inNamespacesSql("f.name", "(case when $2::jsonb ? 'in' then array(select jsonb_array_elements_text($2::jsonb->'in')) end)")}))
    and ($3::text is null or f.group_id = (select id from ${s}.worker_group where name = $3))`;

/**
 * SQL: a further condition on a row of a run, which requires the filter's labels. The labels are a part of the statement's text and not a
 * parameter, because most filters have none.
 */
export const andLabelsSql = (run: string, { labels }: OperationFilter): string =>
  labels === undefined ? "" : ` and ${run}.labels @> ${jsonLiteral(labels)}`;

/** SQL: a further condition on a row of a task, which requires the filter's labels of its `runLabels`. */
export const andTaskLabelsSql = (task: string, { labels }: OperationFilter): string =>
  labels === undefined ? "" : ` and ${task}.run_labels @> ${jsonLiteral(labels)}`;

const jsonLiteral = (value: object): string => `${pg.escapeLiteral(JSON.stringify(value))}::jsonb`;

export const taskValues = ({ task, matching, namespaces, group }: OperationFilter): unknown[] => [
  task ?? null,
  matching === undefined && namespaces === undefined
    ? null
    : JSON.stringify({
        ...(matching === undefined ? {} : { like: likeOf(matching) }),
        ...(namespaces === undefined ? {} : { in: namespaces }),
      }),
  group ?? null,
];
