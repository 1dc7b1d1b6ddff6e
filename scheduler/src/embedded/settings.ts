/** The store's role and database, and the server's superuser, which only the code of the embedded store uses. */
export const names = {
  user: "carillon",
  database: "carillon",
  owner: "carillon_owner",
  maintenance: "postgres",
} as const;

/** Only a part of the socket's file name: the server does not listen on TCP. */
export const port = 5432;
export const socketName = `.s.PGSQL.${port}`;

export const oldestMajor = 15;

/** Settings that a user must not change. They are passed on the command line, which takes precedence over postgresql.conf. */
export function fixedSettings(): string[] {
  const settings = {
    listen_addresses: "",
    port: String(port),
    // Relative to the data folder, which is the server's working folder: the path of a Unix socket is limited to about 100 bytes.
    unix_socket_directories: "../run",
    unix_socket_permissions: "0700",
    fsync: "on",
    full_page_writes: "on",
    logging_collector: "off",
    log_destination: "stderr",
    lc_messages: "C",
  };
  return Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
}

/** The file postgresql.conf of a new store. It is written only once, so that the user may change it. */
export function configuration(): string {
  const settings: Record<string, string | number> = {
    max_connections: 200,
    // Reserved for processes that register and unregister as users while all other connections are in use.
    superuser_reserved_connections: 5,
    shared_buffers: "128MB",
    synchronous_commit: "on",
    wal_level: "minimal",
    max_wal_senders: 0,
    min_wal_size: "64MB",
    max_wal_size: "512MB",
    // No parallel plans: the server shares the cores of a developer's machine, and parallel plans need more /dev/shm than a container has.
    max_parallel_workers_per_gather: 0,
    max_parallel_maintenance_workers: 0,
    max_logical_replication_workers: 0,
    huge_pages: "off",
    jit: "off",
    timezone: "UTC",
    log_timezone: "UTC",
    log_checkpoints: "off",
    // A failed statement is reported to the client, so its text is not logged as well.
    log_min_error_statement: "panic",
    log_line_prefix: "%m [%p] ",
    default_text_search_config: "pg_catalog.simple",
  };
  // A backend that executes a long statement checks at this interval whether its client still exists.
  if (process.platform === "linux") settings.client_connection_check_interval = "2s";
  const lines = Object.entries(settings).map(([name, value]) => `${name} = '${value}'`);
  return `# Written once by Carillon; change what you like, then restart every process that uses the store.\n${lines.join("\n")}\n`;
}

/** The file pg_hba.conf. Every connection is trusted, because only the folder's owner and root can reach the socket. */
export const authentication = "# Carillon: only the Unix socket, in a folder of mode 0700.\nlocal all all trust\n";

export function initdbArguments(data: string, major: number): string[] {
  // Text is ordered by bytes, with Unicode's case rules if the server has them built in. No library of the machine is used, so that an
  // upgrade of the machine cannot change the order and corrupt an index.
  const locale = major >= 17 ? ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"] : ["--locale=C"];
  return [
    "-D",
    data,
    "-U",
    names.owner,
    "-E",
    "UTF8",
    "--auth=trust",
    "--data-checksums",
    "--no-instructions",
    ...locale,
  ];
}
