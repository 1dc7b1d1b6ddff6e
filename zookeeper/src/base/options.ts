import { ZooKeeperError } from "./errors.ts";

/**
 * Refuses unknown option names: a misspelt option would be ignored, and an ephemeral node could become a persistent one.
 * @param of as in `create /a` @throws OPTION_INVALID for a name that is not among those
 */
export function checkNames(of: string, path: string, options: object, names: ReadonlySet<string>): void {
  if (typeof options !== "object" || options === null) {
    throw new ZooKeeperError("OPTION_INVALID", `${of}: the options are ${options === null ? "null" : typeof options}`, {
      path,
      hint: `give an object: ${[...names].join(", ")}`,
    });
  }
  for (const name in options) {
    if (names.has(name)) continue;
    throw new ZooKeeperError("OPTION_INVALID", `${of}: there is no option ${JSON.stringify(name).slice(0, 100)}`, {
      path,
      hint: `there are ${[...names].join(", ")}`,
    });
  }
}
