/** Returns the name of the notification channel. Each schema has its own channel. @param schema the quoted name of the schema */
export function channelOf(schema: string): string {
  return `carillon:${schema.slice(1, -1)}`.replaceAll("'", "''");
}
