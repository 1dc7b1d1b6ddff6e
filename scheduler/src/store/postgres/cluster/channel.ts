/** One channel per schema. `schema` is quoted already. */
export function channelOf(schema: string): string {
  return `carillon:${schema.slice(1, -1)}`.replaceAll("'", "''");
}
