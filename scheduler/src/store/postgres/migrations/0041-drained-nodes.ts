/**
 * Nodes that an operator has drained, by name. A process with such a name takes no runs until the name is resumed. The column `draining` of
 * its session shows this to each statement that claims. A trigger sets it, so that it also holds for sessions that older code opens. The
 * lock, which `drains.ts` takes too, prevents a session from being opened between a drain's look for it and the drain's commit.
 */
export const drainedNodes = (s: string) => `
create table ${s}.drained_node (
  node text primary key,
  since_ms bigint not null,
  author text not null,
  reason text not null
);
create function ${s}.drained_session() returns trigger language plpgsql as $$
begin
  perform pg_advisory_xact_lock_shared(${drainLockSql(s, "new.node")});
  new.draining := exists (select from ${s}.drained_node where node = new.node);
  return new;
end $$;
create trigger drained before insert on ${s}.session for each row execute function ${s}.drained_session();
`;

/** The two numbers of the lock under which a name is drained, resumed, or taken by a process. @param node the name's SQL expression */
export const drainLockSql = (s: string, node: string) =>
  `hashtext('${s.replaceAll("'", "''")}.drained_node'), hashtext(${node})`;
