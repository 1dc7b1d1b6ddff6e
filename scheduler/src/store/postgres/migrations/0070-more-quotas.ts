/** Limits on a user's event streams, and for a worker key (kind 2) on its live sessions and on the runs that its workers start. */
export const moreQuotas = (s: string) => `
alter table ${s}.quota
  add column streams bigint,
  add column sessions bigint;
`;
