/**
 * The two formats of a crontab: a user's (five fields, command) and the system's (five fields, account, command). No line of a crontab
 * states its format. Its path does; if not, its content does, if every entry names an account.
 */
export type CrontabFormat = "user" | "system";

/** Accounts of Debian, of its packages with crontabs, of other systems and of cloud images; the importing machine may add more. */
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

/** The format by the file's path; null: the path does not determine it. */
export function formatOfPlace(path: string): CrontabFormat | null {
  if (/(?:^|\/)etc\/(?:crontab|cron\.d\/[^/]+)$/.test(path)) return "system";
  return spoolAccount(path) === null ? null : "user";
}

/** The account in a user's entry that seems to be a system's entry: a word like an account's name before the program. */
export const seemsAccount = (command: string): string | undefined => {
  const [, word = ""] = /^([a-z_][\w-]*)[ \t]+[/[]/.exec(command) ?? [];
  return usualAccounts.has(word) ? word : undefined;
};

/** The account that owns a file in cron's spool folder: the file has the account's name. */
export function spoolAccount(path: string): string | null {
  return /(?:^|\/)var\/spool\/cron\/(?:crontabs\/|tabs\/)?([A-Za-z_][\w.-]*)$/.exec(path)?.[1] ?? null;
}
