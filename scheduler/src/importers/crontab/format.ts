/**
 * The two formats of a crontab: a user's (five time fields, command) and the system's (five time fields, account, command). The
 * file's path determines the format. If the path does not, the format is `system` if there are entries and, in every entry, a known account
 * and then a path or `[` follow the time; otherwise `user`.
 */
export type CrontabFormat = "user" | "system";

/** Account names of Debian, its packages, other systems and cloud images. `CrontabOptions.accounts` can add more. */
const usualAccounts = new Set(
  `root daemon bin sys games man lp mail news uucp proxy www-data backup list irc nobody _apt systemd-network messagebus
  sshd postgres mysql redis munin logcheck amavis debian-spamd clamav smmsp postfix cricket nagios icinga zabbix prometheus
  ntp ntpsec _chrony unbound named bind nginx apache git gitea jenkins tomcat backuppc debian-tor vmail opendkim
  operator wheel toor ubuntu debian admin ec2-user centos fedora rocky almalinux opc azureuser cloud-user core vagrant pi deploy deployer app
  webapp rails django airflow`.split(/\s+/),
);

export function detectFormat(path: string, text: string, accounts: readonly string[] = []): CrontabFormat {
  const placed = formatOfPlace(path);
  if (placed !== null) return placed;
  const known = new Set([...usualAccounts, ...accounts]);
  let entries = 0;
  for (const line of text.split("\n")) {
    const entry = /^\s*-?(?:@\w+|(?:[\d*][\w*,/~-]*[ \t]+){4}[\w*,/~-]+)[ \t]+(\S+)([ \t]+\S)?/.exec(line);
    if (entry === null) continue;
    if (entry[2] === undefined || !known.has(entry[1] as string)) return "user";
    entries++;
  }
  return entries > 0 ? "system" : "user";
}

/** Returns the format that follows from the file's path; null if the path determines no format. */
export function formatOfPlace(path: string): CrontabFormat | null {
  if (/(?:^|\/)etc\/(?:crontab|cron\.d\/[^/]+)$/.test(path)) return "system";
  return spoolAccount(path) === null ? null : "user";
}

/**
 * Returns the first word of the command if it is a known account and a path or `[` follows, as in a system crontab; else
 * undefined.
 */
export const seemsAccount = (command: string): string | undefined => {
  const [, word = ""] = /^([a-z_][\w-]*)[ \t]+[/[]/.exec(command) ?? [];
  return usualAccounts.has(word) ? word : undefined;
};

/** Returns the owner of a crontab in cron's spool directory, where each file is named after its account; null for any other path. */
export function spoolAccount(path: string): string | null {
  return /(?:^|\/)var\/spool\/cron\/(?:crontabs\/|tabs\/)?([A-Za-z_][\w.-]*)$/.exec(path)?.[1] ?? null;
}
