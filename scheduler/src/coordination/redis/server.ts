import { CarillonError, isCarillonError, messageOf } from "../../base/errors.ts";
import { rightsAt } from "./rights.ts";

/** The oldest accepted version: older versions differ in scripts, ACLs and replication, and are not tested. */
const oldest = { major: 6, minor: 2 };

/**
 * Checks the version, the role and the settings on which the reliability of the stored data depends.
 * @param info the full output of Redis's INFO
 * @throws COORDINATION_UNSUPPORTED; COORDINATION_UNREACHABLE if the server is a replica
 */
export function checkServer(info: string, where: string): void {
  const field = (name: string) => new RegExp(`^${name}:([^\\r\\n]*)`, "m").exec(info)?.[1];
  const version = field("redis_version") ?? "";
  const [major = 0, minor = 0] = version.split(".").map(Number);
  if (!(major > oldest.major || (major === oldest.major && minor >= oldest.minor))) {
    throw new CarillonError(
      "COORDINATION_UNSUPPORTED",
      `the Redis at ${where} has the version ${version || "unknown"}`,
      {
        hint: `Use Redis ${oldest.major}.${oldest.minor} or newer, or a Valkey.`,
      },
    );
  }
  const policy = field("maxmemory_policy") ?? "unknown";
  if (policy !== "noeviction") {
    throw new CarillonError(
      "COORDINATION_UNSUPPORTED",
      `the Redis at ${where} may throw away keys when its memory is full (maxmemory-policy ${policy})`,
      {
        hint: "Set maxmemory-policy to noeviction, or use another Redis than the one that serves as a cache.",
      },
    );
  }
  // Behind sentinels, a replica can answer here until the sentinels have announced the new master.
  if (field("role") !== "master") {
    throw new CarillonError("COORDINATION_UNREACHABLE", `the Redis at ${where} is a replica, not the master`, {
      hint: "Give the master's address, or the sentinels' (redis+sentinel://…).",
    });
  }
}

/** Converts the error of a failed request to a Carillon error. An error caused by a defect of this code is returned unchanged. */
export function redisTrouble(error: unknown, address: Parameters<typeof rightsAt>[0] & { text: string }): unknown {
  if (isCarillonError(error)) return error;
  const where = address.text;
  const last = (error as { lastNodeError?: unknown } | undefined)?.lastNodeError;
  const message = messageOf(last ?? error);
  const foreign = /\bFOREIGN (.*)/.exec(message);
  if (foreign) {
    return new CarillonError("COORDINATION_FOREIGN", `the Redis at ${where} serves another cluster, ${foreign[1]}`, {
      hint: "Two clusters on one Redis need two prefixes: add ?prefix=NAME to the URL of one of them.",
      cause: error,
    });
  }
  if (/WRONGTYPE/.test(message)) {
    return new CarillonError("COORDINATION_FOREIGN", `the Redis at ${where} has something else under our keys`, {
      hint: "Use another database or another ?prefix=NAME.",
      cause: error,
    });
  }
  if (/NOAUTH|WRONGPASS|NOPERM|ACL failure|invalid password|invalid username|no permissions?\b/i.test(message)) {
    return new CarillonError("COORDINATION_REFUSED", `the Redis at ${where} refused: ${message}`, {
      hint: `Check user and password of the URL. The user needs these rights: ${rightsAt(address)}`,
      cause: error,
    });
  }
  if (/user_script|Error (?:compiling|running) script|ERR (?:unknown command|wrong number|syntax)/i.test(message)) {
    return error;
  }
  return new CarillonError("COORDINATION_UNREACHABLE", `the Redis at ${where} cannot be reached: ${message}`, {
    hint: "Is it up, are host and port right, does a firewall stand between?",
    cause: error,
  });
}
