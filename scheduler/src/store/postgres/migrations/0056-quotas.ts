/** The amounts that a namespace (0) or a user (1) may enqueue by the API. Servers of older code do not check them. */
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
