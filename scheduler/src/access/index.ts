/** carillon/access: the names of roles and scopes, and a function that returns the namespace of a name. */
export { namespaceOf } from "../base/namespace.ts";
export { type Role, roles, type Scope, scopes } from "./access.ts";
