/** The result of `exchange`. In a file of its own, so that the published types contain nothing of the exchanged parts. */
export interface Exchanged {
  /** Options that differ and are in force from now on, each with the number of its entries. No values: they may be secret. */
  changed: { option: string; count: number }[];
  /** Options that differ, but take effect only after a restart. */
  restart: string[];
}
