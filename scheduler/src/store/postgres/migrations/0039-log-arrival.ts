/**
 * The transaction that wrote a line of a log, by which the log is read in the order of arrival: a line may come long after its time and
 * after later lines. Lines from before have none, and every snapshot that is used has them.
 */
export const logArrival = (s: string) => `
alter table ${s}.run_log add column xid xid8;
alter table ${s}.run_log alter column xid set default pg_current_xact_id();
create index run_log_arrival on ${s}.run_log (run_id, xid) where xid is not null;
`;
