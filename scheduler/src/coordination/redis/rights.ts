import type { RedisAddress } from "./address.ts";

/** What an ACL user of this address needs, as ACL SETUSER takes it: docs/redis.md, where a test reads it. */
export function rightsAt({ prefix, database, kind }: Pick<RedisAddress, "prefix" | "database" | "kind">): string {
  const keys = `~{${prefix}}:* ~{${prefix}:lock:* ~{${prefix}:semaphore:* ~{${prefix}:election:* &{${prefix}}:*`;
  const commands = "+eval +evalsha +info +subscribe +publish +@string +@hash +@sortedset +del +pexpire +pttl +time";
  const more = kind === "cluster" ? " +cluster|slots +cluster|info" : database === 0 ? "" : " +select";
  return `${keys} ${commands}${more}`;
}
