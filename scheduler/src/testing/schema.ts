import pg from "pg";

/** Removes what a test tower made, as a whole. @param schema a name of our own making: letters, digits and _ */
export async function dropSchema(url: string, schema: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(`drop schema if exists ${schema} cascade`);
  } finally {
    await client.end();
  }
}
