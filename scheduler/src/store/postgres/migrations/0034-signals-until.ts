import { channelOf } from "../cluster/channel.ts";

/**
 * The time until which writers insert signals into the table for processes that poll. Writers read it from a sequence, because a sequence
 * has the same value for all transactions. With the row in `signal_poll` alone, a transaction whose snapshot is older than that row would
 * not insert its signal, and the polling process would miss it. Polling processes of older versions set only the row.
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
