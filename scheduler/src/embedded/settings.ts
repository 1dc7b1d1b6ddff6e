/** The role and database of the store, and the superuser that only this folder's code uses. */
export const names = {
  user: "carillon",
  database: "carillon",
  owner: "carillon_owner",
  maintenance: "postgres",
} as const;

/** Part of the socket's file name; the server does not listen on TCP. */
export const port = 5432;
export const socketName = `.s.PGSQL.${port}`;

export const oldestMajor = 15;

/** Settings that must hold whatever a user writes into postgresql.conf: they are on the command line, which takes precedence. */
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

/** postgresql.conf of a new store. It is written once, so a user may change it. */
export function configuration(): string {
  const settings: Record<string, string | number> = {
    max_connections: 200,
    // Reserved for users that attach and leave while all other connections are in use.
    superuser_reserved_connections: 5,
    shared_buffers: "128MB",
    synchronous_commit: "on",
    wal_level: "minimal",
    max_wal_senders: 0,
    min_wal_size: "64MB",
    max_wal_size: "512MB",
    // A private server on a developer's machine shares its cores, and parallel plans need more /dev/shm than a
    // container has.
    max_parallel_workers_per_gather: 0,
    max_parallel_maintenance_workers: 0,
    max_logical_replication_workers: 0,
    huge_pages: "off",
    jit: "off",
    timezone: "UTC",
    log_timezone: "UTC",
    log_checkpoints: "off",
    // The client receives the error of a failed statement; the statement's text would only fill the log.
    log_min_error_statement: "panic",
    log_line_prefix: "%m [%p] ",
    default_text_search_config: "pg_catalog.simple",
  };
  // Lets a backend in a long statement notice that its client's process was killed.
  if (process.platform === "linux") settings.client_connection_check_interval = "2s";
  const lines = Object.entries(settings).map(([name, value]) => `${name} = '${value}'`);
  return `# Written once by Carillon; change what you like, then restart every process that uses the store.\n${lines.join("\n")}\n`;
}

/** pg_hba.conf: the socket's folder is private (0700), so only its user and root reach the socket. */
export const authentication = "# Carillon: only the Unix socket, in a folder of mode 0700.\nlocal all all trust\n";

export function initdbArguments(data: string, major: number): string[] {
  // Text is ordered by bytes, with the case rules of Unicode if the server has them built in. No library of the machine is involved, so
  // an upgrade of the machine cannot corrupt an index.
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
