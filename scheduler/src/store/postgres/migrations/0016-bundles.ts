/**
 * A bundle is a name under which files define tasks. A task that `apply` stored belongs to its bundle until the task is removed.
 * `applied_version` is the version that the last apply wrote or found equal, so the task's versions show what that apply defined.
 */
export const bundles = (s: string) => `
alter table ${s}.task
  add column bundle text,
  add column applied_version int,
  add column deleted_by text,
  add column deleted_why text;
create index task_bundle on ${s}.task (bundle) where bundle is not null;
`;
