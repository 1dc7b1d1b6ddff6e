import { createHash } from "node:crypto";
import type { Reader, Writer } from "../wire/bytes.ts";

export type Permission = "read" | "write" | "create" | "delete" | "admin";

/** Permissions of a user on a node. Children do not inherit them. */
export interface Acl {
  /** `world` (id `anyone`), `auth` (the user who created the node), `digest` (see `digestId`), `ip`, `x509` or `sasl`. */
  readonly scheme: string;
  readonly id: string;
  readonly permissions: readonly Permission[];
}

const bits: Record<Permission, number> = { read: 1, write: 2, create: 4, delete: 8, admin: 16 };
const all = Object.keys(bits) as Permission[];

/** Every client has all permissions. */
export const openAcl: readonly Acl[] = [{ scheme: "world", id: "anyone", permissions: all }];
/** Every client may read, and no client may write. */
export const readAcl: readonly Acl[] = [{ scheme: "world", id: "anyone", permissions: ["read"] }];
/** Only the user who creates the node has permissions. The client must be authenticated first, for example by `addAuth`. */
export const creatorAcl: readonly Acl[] = [{ scheme: "auth", id: "", permissions: all }];

/** Returns the id for the digest scheme in ACLs: `user:`, followed by the base64 text of the SHA-1 of `user:password`. */
export function digestId(user: string, password: string): string {
  return `${user}:${createHash("sha1").update(`${user}:${password}`).digest("base64")}`;
}

export function writeAcl(writer: Writer, acl: readonly Acl[]): void {
  writer.int(acl.length);
  for (const { scheme, id, permissions } of acl) {
    writer.int(permissions.reduce((sum, permission) => sum | bits[permission], 0));
    writer.string(scheme);
    writer.string(id);
  }
}

export function readAcls(reader: Reader): Acl[] {
  return reader.list(() => {
    const mask = reader.int();
    const permissions = all.filter((permission) => mask & bits[permission]);
    return { scheme: reader.string(), id: reader.string(), permissions };
  });
}
