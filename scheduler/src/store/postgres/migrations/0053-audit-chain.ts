/**
 * The hash chain of the audit log (docs/access/audit.md). A deferred trigger gives each row its place and hash at the commit. It locks the
 * row of `audit_chain` until the commit is done, so the chain has the order of the commits, and only commits that write audit rows wait.
 * The trigger also chains rows that older code writes. Rows from before this migration have no place; the chain begins with their digest.
 */
export const auditChain = (s: string) => `
lock table ${s}.audit in share row exclusive mode;
alter table ${s}.audit
  add column seq bigint,
  add column hash bytea;
create unique index audit_seq on ${s}.audit (seq);
create index audit_unchained on ${s}.audit (id) where seq is null;

create function ${s}.audit_content(entry ${s}.audit) returns text language sql stable as $f$
  select jsonb_build_object('entry', entry.id, 'at', entry.at_ms, 'who', entry.who, 'act', entry.act, 'about', entry.about,
    'named', entry.named, 'before', entry.before, 'after', entry.after, 'why', entry.why)::text $f$;

create table ${s}.audit_chain (
  single boolean primary key default true check (single),
  -- The last row of the chain.
  seq bigint not null,
  hash bytea not null,
  -- The row before the first one that is kept; 0: the digest of the rows from before the chain.
  anchor_seq bigint not null,
  anchor_hash bytea not null,
  -- Rows from before the chain are those up to this one; how many there were, null: they were pruned.
  older_until bigint not null,
  older_rows bigint
);
insert into ${s}.audit_chain (seq, hash, anchor_seq, anchor_hash, older_until, older_rows)
select 0, digest, 0, digest, until, rows
from (select sha256(coalesce(string_agg(sha256(convert_to(${s}.audit_content(a), 'UTF8')), ''::bytea order by a.id), ''::bytea)) as digest,
             coalesce(max(a.id), 0) as until, count(*) as rows from ${s}.audit a) older;

create function ${s}.chain_audit() returns trigger language plpgsql as $f$
declare
  chain ${s}.audit_chain;
  entry ${s}.audit;
begin
  -- The first row of a transaction chains all of its rows.
  if exists (select from ${s}.audit where id = new.id and seq is not null)
     or new.id <= (select older_until from ${s}.audit_chain) then return null; end if;
  select * into strict chain from ${s}.audit_chain for update;
  for entry in select * from ${s}.audit where seq is null and id > chain.older_until order by id loop
    chain.seq := chain.seq + 1;
    chain.hash := sha256(chain.hash || convert_to(${s}.audit_content(entry), 'UTF8'));
    update ${s}.audit set seq = chain.seq, hash = chain.hash where id = entry.id;
  end loop;
  update ${s}.audit_chain set seq = chain.seq, hash = chain.hash;
  return null;
end $f$;
create constraint trigger chained after insert on ${s}.audit deferrable initially deferred
  for each row when (new.seq is null) execute function ${s}.chain_audit();
`;
