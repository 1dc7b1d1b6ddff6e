/** Limits on how much a namespace (kind 0) or a user (kind 1) may enqueue through the API. Servers of older versions do not check them. */
export const quotas = (s: string) => `
create table ${s}.quota (
  kind smallint not null,
  name text not null,
  enqueues bigint,
  waiting bigint,
  bytes bigint,
  changed_ms bigint not null,
  author text not null,
  reason text not null,
  primary key (kind, name)
);
`;
