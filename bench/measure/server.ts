import type pg from "pg";

/** The server's own description: a bench on a server that does not wait for its disk has to say so. */
export async function serverTitle(client: pg.Client): Promise<string> {
  const setting = async (name: string) => String((await client.query(`show ${name}`)).rows[0]?.[name]);
  const version = (await setting("server_version")).split(" ")[0];
  return `PostgreSQL ${version}, fsync ${await setting("fsync")}, synchronous_commit ${await setting("synchronous_commit")}`;
}
