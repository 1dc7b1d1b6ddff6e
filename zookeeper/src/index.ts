export type { Acl, Permission } from "./acl.ts";
export { creatorAcl, digestId, openAcl, readAcl } from "./acl.ts";
export type { ZooKeeperErrorCode } from "./errors.ts";
export { isZooKeeperError, ZooKeeperError } from "./errors.ts";
export type * from "./operations.ts";
export type { Session, SessionState, ZooKeeper } from "./session.ts";
export type { Stat } from "./stat.ts";
