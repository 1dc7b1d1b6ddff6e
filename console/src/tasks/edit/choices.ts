import type { Words } from "../../messages/texts.ts";

/** Select entries for the values of an option. The label of a value is the message `kind.value`. */
export const choices = <Value extends string>(t: Words["t"], kind: string, values: readonly Value[]) =>
  values.map((value) => ({ value, label: t(`${kind}.${value}` as "overlap.allow") }));
