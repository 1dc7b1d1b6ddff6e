import { channelOf } from "../cluster/channel.ts";

/**
 * The time until which signals are kept for processes that poll. Writers read it from a sequence, which has one value for all transactions.
 * A transaction whose snapshot is older than the poll does not see the row in `signal_poll`, and would send a signal that no process
 * receives. Processes of older code that poll set only the row.
 */
export const signalsUntil = (s: string) => `
-- Unix time in ms.
create sequence ${s}.signals_until as bigint;

create or replace function ${s}.tell(said text) returns void language plpgsql cost 1 as $f$
begin
  perform pg_notify('${channelOf(s)}', said);
  -- Not of more than a reader asks for at once: it asked before the clock was set back, and may have gone.
  if (select u.last_value - extract(epoch from clock_timestamp()) * 1000 between 0 and 60000 from ${s}.signals_until u)
     or exists (select from ${s}.signal_poll p where p.until > clock_timestamp()) then
    insert into ${s}.signal (said) values (tell.said);
  end if;
end $f$;
`;
