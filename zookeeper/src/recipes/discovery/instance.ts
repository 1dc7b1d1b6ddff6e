/**
 * One instance of a service, and its JSON as Java Curator's JsonInstanceSerializer writes it: the same fields in the same order, so that
 * the bytes are equal. `enabled` is written only if it is false, as by Curator.
 */
import { randomUUID } from "node:crypto";
import { ZooKeeperError } from "../../base/errors.ts";
import { checkPath } from "../../base/paths.ts";
import { localAddress } from "../locks/mutex.ts";
import { parseUriSpec, type UriSpec } from "./uri-spec.ts";

/** DYNAMIC: an ephemeral node, deleted with its session. STATIC and PERMANENT: a node that remains when its process dies. */
export type ServiceType = "DYNAMIC" | "STATIC" | "PERMANENT";

export interface ServiceInstance<Payload = unknown> {
  readonly name: string;
  /** Unique among the instances of the service. */
  readonly id: string;
  readonly address: string | null;
  readonly port: number | null;
  readonly sslPort: number | null;
  /** Any JSON value. Java reads an object with the field `@class` as that class, and any other object as a map. */
  readonly payload: Payload | null;
  /** Epoch milliseconds. */
  readonly registrationTimeUTC: number;
  readonly serviceType: ServiceType | "DYNAMIC_SEQUENTIAL";
  readonly uriSpec: UriSpec | null;
  /** Providers do not choose instances with `enabled` false. */
  readonly enabled: boolean;
}

/** The input of a registration. The defaults are those of Curator. */
export interface NewInstance<Payload = unknown> {
  readonly name: string;
  /** Default: a random UUID. */
  readonly id?: string;
  /** Default: this host's first IPv4 address that is not internal; 127.0.0.1 if there is none. */
  readonly address?: string;
  readonly port?: number;
  readonly sslPort?: number;
  readonly payload?: Payload;
  /** Epoch ms; default: the present time. */
  readonly registrationTimeUTC?: number;
  /** Default: DYNAMIC. */
  readonly serviceType?: ServiceType;
  /** A URI template, such as `{scheme}://{address}:{port}/reports`. */
  readonly uriSpec?: string | UriSpec;
  /** Default: true. */
  readonly enabled?: boolean;
}

const types: readonly string[] = ["DYNAMIC", "STATIC", "PERMANENT"];

/** Fills in the defaults. @throws PATH_INVALID if the name or id is not a valid node name, OPTION_INVALID */
export function instanceOf<Payload>(given: NewInstance<Payload>): ServiceInstance<Payload> {
  const { name, id = randomUUID(), serviceType = "DYNAMIC", uriSpec = null } = given;
  checkServiceName(name);
  checkServiceName(id);
  const invalid = (what: string, hint: string) =>
    new ZooKeeperError("OPTION_INVALID", `the instance ${id} of ${name}: ${what}`, { hint });
  for (const port of [given.port, given.sslPort]) {
    if (port === undefined || (Number.isInteger(port) && port >= 0 && port <= 65_535)) continue;
    throw invalid(`a port is ${port}`, "give a whole number from 0 to 65535");
  }
  if (!types.includes(serviceType)) throw invalid(`serviceType is ${serviceType}`, `give one of ${types.join(", ")}`);
  return {
    name,
    id,
    address: given.address ?? localAddress(),
    port: given.port ?? null,
    sslPort: given.sslPort ?? null,
    payload: given.payload ?? null,
    registrationTimeUTC: given.registrationTimeUTC ?? Date.now(),
    serviceType,
    uriSpec: typeof uriSpec === "string" ? parseUriSpec(uriSpec) : uriSpec,
    enabled: given.enabled ?? true,
  };
}

/** Checks a service name or instance id, which must be a valid name of a node. @throws PATH_INVALID */
export function checkServiceName(name: string): void {
  checkPath(name === "" ? "//" : `/${name}`);
  if (!name.includes("/")) return;
  const hint = "the names of services and instances are single names, without slashes";
  throw new ZooKeeperError("PATH_INVALID", `${JSON.stringify(name)} has a slash in it`, { hint });
}

/** Encodes JSON as Jackson does: like JSON.stringify, but control characters are escaped with upper-case hexadecimal digits. */
export function encodeInstance(instance: ServiceInstance): string {
  const { name, id, address, port, sslPort, payload, registrationTimeUTC, serviceType, uriSpec, enabled } = instance;
  const parts = uriSpec && { parts: uriSpec.parts.map(({ value, variable }) => ({ value, variable })) };
  const fields = { name, id, address, port, sslPort, payload, registrationTimeUTC, serviceType, uriSpec: parts };
  const text = JSON.stringify(enabled ? fields : { ...fields, enabled });
  return text.replace(/\\(\\|u00..)/g, (found) => (found === "\\\\" ? found : `\\u${found.slice(2).toUpperCase()}`));
}

/** Decodes an instance; missing fields get Curator's defaults. @throws DATA_INVALID */
export function decodeInstance<Payload>(data: Buffer, path: string): ServiceInstance<Payload> {
  let read: Partial<ServiceInstance<Payload>> | null;
  try {
    read = JSON.parse(data.toString());
  } catch (cause) {
    throw invalidInstance(path, cause);
  }
  if (typeof read !== "object" || typeof read?.name !== "string" || typeof read.id !== "string") {
    throw invalidInstance(path);
  }
  return {
    name: read.name,
    id: read.id,
    address: read.address ?? null,
    port: read.port ?? null,
    sslPort: read.sslPort ?? null,
    payload: read.payload ?? null,
    registrationTimeUTC: read.registrationTimeUTC ?? 0,
    serviceType: read.serviceType ?? "DYNAMIC",
    uriSpec: read.uriSpec ?? null,
    enabled: read.enabled ?? true,
  };
}

function invalidInstance(path: string, cause?: unknown): ZooKeeperError {
  const hint = "an instance is JSON with a name and an id: does something else use this path?";
  return new ZooKeeperError("DATA_INVALID", `${path} holds no service instance`, { path, hint, cause });
}

/**
 * Returns the instance's URI by its `uriSpec`. Known variables: scheme (https with an `sslPort`, otherwise http), name, id, address, port,
 * ssl-port, registration-time-utc, service-type.
 * @param variables additional variables, which override the known ones
 * @throws OPTION_INVALID for an unknown variable, DATA_INVALID for an instance without a `uriSpec`
 */
export function uriOf(instance: ServiceInstance, variables: Readonly<Record<string, string>> = {}): string {
  const { name, id, address, port, sslPort, uriSpec } = instance;
  if (!uriSpec) {
    const hint = "register it with uriSpec, or use its address and port";
    throw new ZooKeeperError("DATA_INVALID", `the instance ${id} of ${name} has no uriSpec`, { hint });
  }
  const known = new Map<string, string>([
    ["scheme", sslPort === null ? "http" : "https"],
    ["name", name],
    ["id", id],
    ["address", address ?? ""],
    ["port", String(port ?? "")],
    ["ssl-port", String(sslPort ?? "")],
    ["registration-time-utc", String(instance.registrationTimeUTC)],
    ["service-type", instance.serviceType.toLowerCase()],
    ["[", "{"],
    ["]", "}"],
    ...Object.entries(variables),
  ]);
  const text = uriSpec.parts.map(({ value, variable }) => (variable ? known.get(value) : value));
  const unknown = uriSpec.parts[text.indexOf(undefined)];
  if (!unknown) return text.join("");
  const hint = `there are ${[...known.keys()].join(", ")}`;
  throw new ZooKeeperError("OPTION_INVALID", `the URI of ${name} has an unknown variable {${unknown.value}}`, { hint });
}
