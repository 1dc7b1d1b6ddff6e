/**
 * `serverErrors` holds the error codes that servers return (numbers as in `KeeperException.Code`); `clientErrors` holds the errors that
 * this client detects itself. A ZooKeeperError has a code for programs, the path, a message for people, and a hint how to fix it.
 */
export const serverErrors = {
  SYSTEM_ERROR: [-1, "the server reports a fault of its own", "look in the server's log"],
  RUNTIME_INCONSISTENCY: [-2, "the server found an inconsistency", "look in the server's log"],
  DATA_INCONSISTENCY: [-3, "the server's data is inconsistent", "look in the server's log"],
  MARSHALLING_ERROR: [-5, "the server could not read the request", "the data may exceed the server's jute.maxbuffer"],
  UNIMPLEMENTED: [
    -6,
    "the server does not know this operation",
    "it may be too old for it, or have it switched off: TTL nodes need zookeeper.extendedTypesEnabled=true",
  ],
  OPERATION_TIMEOUT: [-7, "the server gave the operation up", "try again"],
  BAD_ARGUMENTS: [-8, "the server refuses the arguments", "check path, mode and data"],
  NEW_CONFIG_NO_QUORUM: [-13, "the new configuration has no quorum", "start its servers first"],
  RECONFIG_IN_PROGRESS: [-14, "another reconfiguration runs", "wait for its end"],
  API_ERROR: [-100, "the server refuses the request", "look in the server's log"],
  NO_NODE: [-101, "the node does not exist", "create it, or its parents, first"],
  NO_AUTH: [-102, "this session has no permission", "add credentials with addAuth, or change the node's ACL"],
  BAD_VERSION: [-103, "the node's version has moved on", "read it again and decide anew"],
  NO_CHILDREN_FOR_EPHEMERALS: [-108, "an ephemeral node can have no children", "create the parent as persistent"],
  NODE_EXISTS: [-110, "the node exists already", "use set, or another path"],
  NOT_EMPTY: [-111, "the node has children", "delete them first"],
  SESSION_EXPIRED: [-112, "the session has ended", "use the client's new session; ephemeral nodes are gone"],
  INVALID_CALLBACK: [-113, "the server refuses the callback", "this is a fault of the client: report it"],
  INVALID_ACL: [-114, "the ACL is invalid", "`auth` needs addAuth first; an ACL must not be empty"],
  AUTH_FAILED: [-115, "the server refuses the credentials", "check scheme, user and password"],
  SESSION_MOVED: [-118, "the session is used through another server", "another process uses its id and password"],
  NOT_READ_ONLY: [-119, "the server is read-only", "its quorum is lost: wait, or name other servers"],
  EPHEMERAL_ON_LOCAL_SESSION: [-120, "a local session can own no ephemeral node", "use a server without localSessions"],
  NO_WATCHER: [-121, "no such watch is set", "it may have fired, or ended with its session"],
  REQUEST_TIMEOUT: [-122, "the server gave the request up", "try again"],
  RECONFIG_DISABLED: [-123, "reconfiguration is switched off", "set reconfigEnabled=true on the servers"],
  SESSION_CLOSED_REQUIRE_SASL_AUTH: [-124, "the server demands SASL", "give the option `sasl`"],
  QUOTA_EXCEEDED: [-125, "the path's quota is used up", "delete something, or raise the quota"],
  THROTTLED: [-127, "the server is overloaded and dropped the request", "try again later, with fewer at once"],
} as const;

export const clientErrors = {
  CONNECTION_LOSS: "The connection was lost before the answer came: the operation may have been carried out or not.",
  UNREACHABLE: "No server answered in time.",
  CLOSED: "The client has been closed.",
  OVERLOADED: "Too many requests wait for the server.",
  REPLY_TOO_LARGE: "The answer is larger than maxReplyBytes; only this request failed.",
  DATA_TOO_LARGE: "The data, or the request with it, is larger than maxRequestBytes.",
  PATH_INVALID: "The path is not one that ZooKeeper accepts.",
  CONNECT_STRING_INVALID: "The connect string cannot be read.",
  OPTION_INVALID: "An option has a value it cannot have.",
  ABORTED: "The caller gave the operation up by its signal; if it had been sent, it may have been carried out.",
  PROTOCOL: "The server sent something that is not ZooKeeper's protocol.",
  UNKNOWN: "The server answered with a code that this client does not know.",
  NOT_HELD: "The lock, lease or leadership is not held, or no longer.",
  DATA_INVALID: "A node's data is not what this recipe stores there.",
  CACHE_FULL: "The cache met more nodes or bytes than it may hold.",
} as const;

export type ServerErrorCode = keyof typeof serverErrors;
export type ZooKeeperErrorCode = ServerErrorCode | keyof typeof clientErrors;

/** The longest message in characters, because a message may quote a refused value of any length. */
const longestMessage = 8 * 1024;

export class ZooKeeperError extends Error {
  override readonly name = "ZooKeeperError";
  readonly code: ZooKeeperErrorCode;
  /** The path of the operation; empty if the operation has no path. */
  readonly path: string;
  /** Advice for the caller how to fix the problem. */
  readonly hint: string;

  constructor(
    code: ZooKeeperErrorCode,
    message: string,
    options: { path?: string; hint?: string; cause?: unknown } = {},
  ) {
    super(
      message.length <= longestMessage ? message : `${message.slice(0, longestMessage)}…`,
      options.cause === undefined ? undefined : { cause: options.cause },
    );
    this.code = code;
    this.path = options.path ?? "";
    this.hint = options.hint ?? "";
  }
}

/** @param code if given, the error must have one of these codes */
export function isZooKeeperError(error: unknown, ...codes: ZooKeeperErrorCode[]): error is ZooKeeperError {
  return error instanceof ZooKeeperError && (codes.length === 0 || codes.includes(error.code));
}

const byNumber = new Map<number, ServerErrorCode>(
  (Object.keys(serverErrors) as ServerErrorCode[]).map((code) => [serverErrors[code][0], code]),
);

/**
 * Converts a server's error number to a ZooKeeperError.
 * @param number `err` of the reply's header
 * @param what operation and path for the message, such as `create /a/b`
 */
export function serverError(number: number, what: string, path: string): ZooKeeperError {
  const code = byNumber.get(number);
  if (!code) return new ZooKeeperError("UNKNOWN", `${what}: the server answered with error ${number}`, { path });
  const [, message, hint] = serverErrors[code];
  return new ZooKeeperError(code, `${what}: ${message}`, { path, hint });
}
