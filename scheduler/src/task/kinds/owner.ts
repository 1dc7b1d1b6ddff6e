/** The option that names the team or person responsible for a task. */
import { limits } from "../../base/limits.ts";
import { name } from "./kinds.ts";

export const ownerRow = {
  part: "owner",
  kind: name(limits.ownerLength),
  usual: null,
  isAbsent: true,
  nullable: true,
  description:
    "The team or person that answers for it: alarm rules can be limited to owners, and so sent to their channels.",
  since: "0.1.0",
  editable: true,
  example: "payments",
} as const;
