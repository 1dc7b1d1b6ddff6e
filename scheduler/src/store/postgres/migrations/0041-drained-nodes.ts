/**
 * The names of nodes that an operator has drained. A process with such a name claims no runs until the node is resumed. Each statement that
 * claims reads this from the column `draining` of the process's session. A trigger sets the column, so that it is also right for sessions
 * that older code opens. The lock, which `drains.ts` takes too, prevents a session from being opened between a drain's read of the sessions
 * and its commit.
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

/** SQL: the two numbers of the lock under which a node is drained or resumed, or its session is opened. @param node SQL for the name */
export const drainLockSql = (s: string, node: string) =>
  `hashtext('${s.replaceAll("'", "''")}.drained_node'), hashtext(${node})`;
