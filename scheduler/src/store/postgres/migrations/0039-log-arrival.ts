/**
 * The transaction that wrote a log line. Readers read a log in the order of arrival, because a line may arrive long after its time and
 * after later lines. Lines from before this migration have no transaction and are visible in every snapshot in use.
 */
export const logArrival = (s: string) => `
alter table ${s}.run_log add column xid xid8;
alter table ${s}.run_log alter column xid set default pg_current_xact_id();
create index run_log_arrival on ${s}.run_log (run_id, xid) where xid is not null;
`;
