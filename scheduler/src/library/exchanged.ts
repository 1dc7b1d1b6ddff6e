/** The result of `exchange`. It has its own file, so that the published types do not include the types of the changed parts. */
export interface Exchanged {
  /**
   * The options that were applied, each with the number of its entries (for a flag, 0 or 1). The values are left out, because
   * they may be secret.
   */
  changed: { option: string; count: number }[];
  /** The options that differ but take effect only after a restart. */
  restart: string[];
}
