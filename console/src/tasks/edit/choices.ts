import type { Words } from "../../messages/texts.ts";

/** The entries of a select for an option; each label is the message `kind.value`. */
export const choices = <Value extends string>(t: Words["t"], kind: string, values: readonly Value[]) =>
  values.map((value) => ({ value, label: t(`${kind}.${value}` as "overlap.allow") }));
