import type pg from "pg";

/** Describes the server with the settings that decide whether a commit waits for the disk, because these change the figures. */
export async function serverTitle(client: pg.Client): Promise<string> {
  const setting = async (name: string) => String((await client.query(`show ${name}`)).rows[0]?.[name]);
  const version = (await setting("server_version")).split(" ")[0];
  return `PostgreSQL ${version}, fsync ${await setting("fsync")}, synchronous_commit ${await setting("synchronous_commit")}`;
}
