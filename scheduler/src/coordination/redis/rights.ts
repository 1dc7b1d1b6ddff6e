import type { RedisAddress } from "./address.ts";

/**
 * The permissions that an ACL user for this address needs, in the syntax of ACL SETUSER. docs/coordination/redis.md lists the same
 * permissions, and a test compares them.
 */
export function rightsAt({ prefix, database, kind }: Pick<RedisAddress, "prefix" | "database" | "kind">): string {
  const keys = `~{${prefix}}:* ~{${prefix}:lock:* ~{${prefix}:semaphore:* ~{${prefix}:election:* &{${prefix}}:*`;
  const commands = "+eval +evalsha +info +subscribe +publish +@string +@hash +@sortedset +del +pexpire +pttl +time";
  const more = kind === "cluster" ? " +cluster|slots +cluster|info" : database === 0 ? "" : " +select";
  return `${keys} ${commands}${more}`;
}
