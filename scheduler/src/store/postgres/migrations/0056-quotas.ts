/** What the API lets a namespace (0), or a user (1), enqueue. Servers of older code do not ask. */
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
