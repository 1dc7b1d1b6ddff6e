/** A screen's filters, kept in the address as plain text: `?state=failed,cancelled`. */
export type Filter = Record<string, string | undefined>;

/** Returns a function that keeps only the named filters and drops empty ones. */
export const picks =
  (...names: string[]) =>
  (search: Filter): Filter =>
    Object.fromEntries(
      names.flatMap((name) => (search[name] === undefined || search[name] === "" ? [] : [[name, search[name]]])),
    );
