/** A template for an instance's URI in the form of Java Curator's UriSpec: text with variables, such as `{scheme}://{address}:{port}`. */
import { ZooKeeperError } from "../../base/errors.ts";

export interface UriSpec {
  readonly parts: readonly { readonly value: string; readonly variable: boolean }[];
}

/** @param spec the template, in which `{[}` and `{]}` mean braces @throws OPTION_INVALID for braces that do not match */
export function parseUriSpec(spec: string): UriSpec {
  const parts = spec
    .split(/(\{[^{}]*\})/)
    .filter((part) => part !== "")
    .map((part) =>
      part.startsWith("{") && part.endsWith("}")
        ? { value: part.slice(1, -1).trim(), variable: true }
        : { value: part, variable: false },
    );
  if (!parts.some(({ value, variable }) => !variable && /[{}]/.test(value))) return { parts };
  const hint = "a variable is a name in braces: {address}; {[} and {]} stand for braces themselves";
  throw new ZooKeeperError("OPTION_INVALID", `the URI ${JSON.stringify(spec)} has braces that do not match`, { hint });
}
