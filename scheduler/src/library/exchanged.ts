/** What `exchange` found. In a file of its own, as the published types have nothing of the parts that are exchanged. */
export interface Exchanged {
  /** What differs and holds from now on: the option, and how many entries of it there are. No values: they may be secret. */
  changed: { option: string; count: number }[];
  /** Options that differ and hold after a restart only. */
  restart: string[];
}
