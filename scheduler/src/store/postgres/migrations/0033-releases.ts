/** The releases of the application code that contains the definitions of tasks: see task/release.ts. */
export const releases = (s: string) => `
create table ${s}.release (
  id int generated always as identity primary key,
  name text not null unique,
  label text not null,
  number bigint,
  first_ms bigint not null,
  -- When a process of it last ended, or brought a definition.
  seen_ms bigint not null,
  -- Nobody lived of it for the grace time, and what it stood behind went to others, if there were any.
  settled boolean not null default false
);
create table ${s}.task_code (
  -- No index by release: who asks by that goes through the whole, once when the last process of a release has gone. And no
  -- references, which each row would be checked for: tasks are never deleted, and who deletes releases deletes these.
  task_id int not null,
  release_id int not null,
  code text not null,
  definition_text text not null,
  primary key (task_id, release_id)
);
-- Of the definition without what was edited by hand, as it is in that version: older code stores versions and leaves this as it is.
alter table ${s}.task add column code text, add column code_version int;
`;
