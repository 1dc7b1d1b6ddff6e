import { randomUUID } from "node:crypto";
import {
  type Acl,
  type ConnectOptions,
  connect,
  creatorAcl,
  isZooKeeperError,
  openAcl,
  type Session,
  type ZooKeeper,
} from "@carillon/zookeeper";
import { escapeHint } from "../../base/credentials.ts";
import { CarillonError, type ErrorCode } from "../../base/errors.ts";

export const members = "/members";
const service = "/service";

/**
 * The path of a cluster in ZooKeeper: zookeeper://[user:password@]host:port,host:port/path, or zookeepers:// for TLS with the system's
 * certificate authorities; the default path is /carillon. With credentials, only clients that have them may read or write there. The
 * credentials are used for ZooKeeper's own digest scheme or, with ?auth=sasl, for a login by SASL DIGEST-MD5, which some servers require.
 */
export class ClusterPath {
  readonly servers: string;
  readonly access: Pick<ConnectOptions, "auth" | "sasl" | "tls">;
  readonly acl: readonly Acl[];
  readonly #clusterId: string;
  /** The address without credentials, for messages. */
  readonly #where: string;

  constructor(url: string, clusterId: string) {
    const [, scheme = "", credentials, rest = "", query = ""] =
      /^(zookeepers?):\/\/(?:([^/]*)@)?([^?]*)(?:\?(.*))?$/.exec(url) ?? [];
    // An unescaped / or ? in the password ends the servers too early. The text after it is then part of the password, and is not shown.
    if (rest.includes("@")) throw wrongOption("has an @ after its servers", escapeHint);
    const sasl = query === "auth=sasl";
    if (query !== "" && !sasl) throw wrongOption("has an option that is not known", "The only option is ?auth=sasl.");
    if (sasl && !credentials)
      throw wrongOption("asks for a login without a user", "Give zookeeper://user:password@host:2181/path?auth=sasl.");
    const [servers = "", ...names] = rest.split("/");
    const path = names.join("/") || "carillon";
    this.servers = `${servers}/${path}`;
    this.#where = `${scheme}://${this.servers}`;
    this.#clusterId = clusterId;
    this.acl = credentials ? creatorAcl : openAcl;
    this.access = {
      auth: credentials && !sasl ? [{ scheme: "digest", credentials: decoded(credentials) }] : [],
      ...(credentials && sasl ? { sasl: login(decoded(credentials)) } : {}),
      tls: scheme === "zookeepers" ? {} : undefined,
    };
  }

  /**
   * Claims the path for this cluster, unless the cluster owns it already.
   * @param nameNew returns the new service id if the path has no owner; default: a random id
   * @returns the service id, which distinguishes this ZooKeeper from another
   * @throws COORDINATION_FOREIGN, the errors of ZooKeeper, and the errors of `nameNew`
   */
  async claim(zk: ZooKeeper, nameNew: () => Promise<string> = async () => randomUUID()): Promise<string> {
    for (;;) {
      const found = await this.look(zk);
      if (found && found.clusterId !== this.#clusterId)
        throw this.#foreign(`belongs to another cluster, ${found.clusterId}`);
      const name = found ? undefined : await nameNew();
      try {
        await this.#create(zk, members, "");
      } catch (error) {
        if (!isZooKeeperError(error, "NO_NODE")) throw error;
        await this.#createRoot();
        await this.#create(zk, members, "");
      }
      if (found) return found.serviceId;
      await this.#create(zk, service, JSON.stringify({ cluster: this.#clusterId, service: name }));
    }
  }

  /**
   * Reads which cluster owns the path.
   * @returns undefined if it has no owner
   * @throws COORDINATION_FOREIGN if the data there is not Carillon's
   */
  async look(zk: ZooKeeper): Promise<{ clusterId: string; serviceId: string } | undefined> {
    let text: string;
    try {
      text = (await zk.get(service)).data.toString("utf8");
    } catch (error) {
      if (isZooKeeperError(error, "NO_NODE")) return undefined;
      throw error;
    }
    const found = parsed(text);
    if (typeof found?.cluster === "string" && typeof found.service === "string")
      return { clusterId: found.cluster, serviceId: found.service };
    throw this.#foreign(`has a node ${service} that Carillon did not write`);
  }

  /** True if a cluster owns the path. @param changed called once, when the answer may have changed */
  async exists(session: Session, changed: () => void): Promise<boolean> {
    return (await session.exists(service, { watch: changed })) !== undefined;
  }

  /** A text that differs each time the path has been created; "" if it does not exist. */
  async born(session: Session): Promise<string> {
    const stat = await session.exists(service);
    return stat ? `${stat.czxid} ${stat.ctimeMs}` : "";
  }

  #foreign(what: string): CarillonError {
    return new CarillonError("COORDINATION_FOREIGN", `${this.#where} ${what}`, {
      hint: "Give this cluster a path of its own: zookeeper://host:2181/another-path.",
    });
  }

  /** Converts an error of ZooKeeper to a Carillon error with a hint for the user; returns other errors unchanged. */
  translated(error: unknown): unknown {
    if (!isZooKeeperError(error)) return error;
    const about = (code: ErrorCode, what: string, hint: string) =>
      new CarillonError(code, `${this.#where}: ${what}: ${error.message}`, { hint, cause: error });
    switch (error.code) {
      case "AUTH_FAILED":
      case "NO_AUTH":
        return about(
          "COORDINATION_REFUSED",
          "no permission",
          "Give user:password@ in the URL, or change the path's ACL.",
        );
      case "SESSION_CLOSED_REQUIRE_SASL_AUTH":
        return about(
          "COORDINATION_REFUSED",
          "a login by SASL is asked for",
          "Give zookeeper://user:password@host:2181/path?auth=sasl.",
        );
      case "UNIMPLEMENTED":
        return about("COORDINATION_UNSUPPORTED", "the server is too old", "ZooKeeper 3.6 or newer is needed.");
      case "CONNECT_STRING_INVALID":
        // The text is not shown, because a password without a server stands in the same place.
        return wrongOption("has servers that cannot be read", "For example zookeeper://zk1:2181,zk2:2181/carillon.");
      case "PATH_INVALID":
        return about("OPTION_INVALID", "not an address", "For example zookeeper://zk1:2181,zk2:2181/carillon.");
      case "UNREACHABLE":
      case "CONNECTION_LOSS":
      case "SESSION_EXPIRED": {
        const hint = "Check that the servers run, have a quorum and can be reached.";
        return about("COORDINATION_UNREACHABLE", "no answer", hint);
      }
      default:
        return error;
    }
  }

  /** Creates the path itself and its missing parents. Uses a separate client, because all paths of the usual client are below this path. */
  async #createRoot(): Promise<void> {
    const [servers = "", ...names] = this.servers.split("/");
    const zk = await connect(servers, this.access);
    try {
      for (let depth = 1; depth <= names.length; depth++) {
        const acl = depth === names.length ? this.acl : openAcl;
        await this.#create(zk, `/${names.slice(0, depth).join("/")}`, "", acl);
      }
    } finally {
      await zk.close();
    }
  }

  async #create(zk: ZooKeeper, path: string, data: string, acl = this.acl): Promise<void> {
    try {
      await zk.create(path, data, { acl });
    } catch (error) {
      if (isZooKeeperError(error, "NODE_EXISTS")) return;
      if (!isZooKeeperError(error, "CONNECTION_LOSS")) throw error;
      await this.#create(zk, path, data, acl);
    }
  }
}

function decoded(credentials: string): string {
  try {
    return decodeURIComponent(credentials);
  } catch {
    // The message does not contain the URL's text, because that includes the password.
    throw wrongOption("has user and password not as a URL has them", escapeHint);
  }
}

function login(credentials: string): { username: string; password: string } {
  const [username = "", ...password] = credentials.split(":");
  return { username, password: password.join(":") };
}

const wrongOption = (what: string, hint: string) =>
  new CarillonError("OPTION_INVALID", `coordination ${what}`, { hint });

function parsed(text: string): { cluster?: unknown; service?: unknown } | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && "cluster" in value ? value : undefined;
  } catch {
    return undefined; // not JSON, so not Carillon's data; the caller reports it
  }
}
