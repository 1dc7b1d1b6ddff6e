import type { Token } from "../access/access-store.ts";
import { iso, isoTime } from "./run-json.ts";

/** Converts a token to the form of the HTTP API and of the command line's `--json`. */
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
