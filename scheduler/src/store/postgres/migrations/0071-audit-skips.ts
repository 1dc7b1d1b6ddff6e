/**
 * A commit no longer waits for the chain of the audit log, see docs/access/audit.md: if another commit has locked the row of `audit_chain`,
 * this commit's rows get an empty hash. The next commit, the janitor or a check of the chain gives them their places and hashes.
 */
export const auditSkips = (s: string) => `
create function ${s}.chain_rows(chain ${s}.audit_chain, only_skipped boolean) returns void language plpgsql as $f$
declare
  entry ${s}.audit;
begin
  for entry in select * from ${s}.audit
    where seq is null and id > chain.older_until and (hash is not null or not only_skipped) order by id
  loop
    chain.seq := chain.seq + 1;
    chain.hash := sha256(chain.hash || convert_to(${s}.audit_content(entry), 'UTF8'));
    update ${s}.audit set seq = chain.seq, hash = chain.hash where id = entry.id;
  end loop;
  update ${s}.audit_chain set seq = chain.seq, hash = chain.hash;
end $f$;

create or replace function ${s}.chain_audit() returns trigger language plpgsql as $f$
declare
  chain ${s}.audit_chain;
begin
  if exists (select from ${s}.audit where id = new.id and seq is not null)
     or new.id <= (select older_until from ${s}.audit_chain) then return null; end if;
  select * into chain from ${s}.audit_chain for update skip locked;
  if found then perform ${s}.chain_rows(chain, false);
  else update ${s}.audit set hash = '' where id = new.id;
  end if;
  return null;
end $f$;
`;
