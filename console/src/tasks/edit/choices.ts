import type { Words } from "../../messages/texts.ts";

/** The values of an option as a select shows them, each by the message `kind.value`. */
export const choices = <Value extends string>(t: Words["t"], kind: string, values: readonly Value[]) =>
  values.map((value) => ({ value, label: t(`${kind}.${value}` as "overlap.allow") }));
