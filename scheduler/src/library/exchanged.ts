/** The result of `exchange`. It is in a file of its own, so that the published types do not include those of the exchanged parts. */
export interface Exchanged {
  /** Options that differ and are in force from now on, each with the number of its entries. No values: they may be secret. */
  changed: { option: string; count: number }[];
  /** Options that differ, but take effect only after a restart. */
  restart: string[];
}
