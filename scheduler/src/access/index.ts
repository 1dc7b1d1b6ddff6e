/** carillon/access: the names of roles and scopes, and the namespace that a role may be limited to. */
export { namespaceOf } from "../base/namespace.ts";
export { type Role, roles, type Scope, scopes } from "./access.ts";
