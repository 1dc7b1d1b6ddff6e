/**
 * Workers that reach the store through a server. Only hashes of their keys are stored, and their sessions contain the number of the key. A
 * worker that lost the reply to its join finds its session by `instance`. `tasks` are the tasks that the worker can run; null means any.
 */
export const workerKeys = (s: string) => `
create table ${s}.worker_key (
  id int generated always as identity primary key,
  name text not null,
  groups text[] not null,
  hash bytea not null,
  created_ms bigint not null,
  created_by text not null,
  revoked_ms bigint
);
create unique index worker_key_name on ${s}.worker_key (name) where revoked_ms is null;
alter table ${s}.session add column key_id int;
alter table ${s}.session add column instance text;
alter table ${s}.session add column tasks text[];
`;
