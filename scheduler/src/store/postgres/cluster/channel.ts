/** The name of the notification channel; each schema has its own. `schema` is quoted already. */
export function channelOf(schema: string): string {
  return `carillon:${schema.slice(1, -1)}`.replaceAll("'", "''");
}
