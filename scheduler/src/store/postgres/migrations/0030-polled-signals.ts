import { channelOf } from "../cluster/channel.ts";

/**
 * Signals for processes that cannot use LISTEN, because they reach the store through a pooler in transaction mode. They poll a table. It is
 * written only while a process polls. The table is unlogged, so a crash of the server empties it, which is permitted for signals.
 */
export const polledSignals = (s: string) => `
create unlogged table ${s}.signal (
  xid xid8 not null default pg_current_xact_id(),
  said_at timestamptz not null default clock_timestamp(),
  said text not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
create index signal_by_xid on ${s}.signal (xid);

-- Until when signals are kept for those who poll.
create unlogged table ${s}.signal_poll (
  one boolean primary key default true check (one),
  until timestamptz not null
);

-- Costs little, as pg_notify says of itself: else plans would be others.
create function ${s}.tell(said text) returns void language plpgsql cost 1 as $f$
begin
  perform pg_notify('${channelOf(s)}', said);
  if exists (select from ${s}.signal_poll p where p.until > clock_timestamp()) then
    insert into ${s}.signal (said) values (tell.said);
  end if;
end $f$;
`;
