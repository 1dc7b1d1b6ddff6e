/** Quotas of a user's event streams, and of a worker key (kind 2): its live sessions, and the runs that its workers begin. */
export const moreQuotas = (s: string) => `
alter table ${s}.quota
  add column streams bigint,
  add column sessions bigint;
`;
