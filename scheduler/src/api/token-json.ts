import type { Token } from "../access/access-store.ts";
import { iso, isoTime } from "./run-json.ts";

/** A token as the HTTP API and the command line's `--json` show it. */
export const tokenObject = ({
  name,
  user,
  role,
  scopes,
  namespaces,
  createdMs,
  expiresMs,
  revokedMs,
}: Omit<Token, "tokenId" | "userId">) => ({
  name,
  user,
  role,
  scopes,
  namespaces,
  created: isoTime(createdMs),
  expires: isoTime(expiresMs),
  revoked: iso(revokedMs),
});
