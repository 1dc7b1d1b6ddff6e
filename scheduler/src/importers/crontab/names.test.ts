import { expect, test } from "vitest";
import { namePrefix, nameTasks } from "./names.ts";

const nameOf = (prefix: string, command: string) => nameTasks(prefix, [{ command, identity: command }])[0];
const named = (commands: string[]) =>
  nameTasks(
    "f",
    commands.map((command) => ({ command, identity: command })),
  );

test.each([
  ["sysstat", "command -v debian-sa1 > /dev/null && debian-sa1 1 1", "sysstat-debian-sa1"],
  ["certbot", "test -x /usr/bin/certbot && perl -e 'sleep int(rand(43200))' && certbot -q renew", "certbot"],
  [
    "php",
    "[ -x /usr/lib/php/sessionclean ] && if [ ! -d /run ]; then /usr/lib/php/sessionclean; fi",
    "php-sessionclean",
  ],
  ["munin", "if [ -x /usr/bin/munin-cron ]; then /usr/bin/munin-cron; fi", "munin-cron"],
  ["cacti", "php /usr/share/cacti/site/poller.php 2>&1 >/dev/null | tee >> /var/log/x", "cacti-poller.php"],
  ["f", `d=$({ cat /etc/*; } | tail -1); d=$${"{d:-/var/x}"}; find "$d/" -delete`, "f-find"],
  ["f", "nice -n 10 timeout 5m ionice -c3 /opt/My_Backup.sh --all", "f-my_backup.sh"],
  ["f", "flock -n /run/lock/x /opt/run", "f-run"],
  ["f", "LANG=C A='b c' /opt/run", "f-run"],
  ["f", "python3 -c 'import x'", "f-python3"],
  ["f", "/opt/bérénice", "f-b-r-nice"],
  ["f", "cd /x", "f"],
  ["f", "/", "f"],
])("%s: the name is %s", (prefix, command, name) => {
  expect(nameOf(prefix, command)).toBe(name);
});

test("entries of one program are distinguished by arguments, then by a hash, whatever their order", () => {
  const given = ["/a/x 1 1", "/a/x 60 2", "/a/y", "/b/x 1 1"];
  const names = named(given);
  expect(names.slice(1, 3)).toEqual(["f-x-60-2", "f-y"]);
  expect(names[0]).toMatch(/^f-x-1-1-[0-9a-z]{6}$/);
  expect(names[3]).toMatch(/^f-x-1-1-[0-9a-z]{6}$/);
  expect(names[0]).not.toBe(names[3]);
  expect(named([...given].reverse()).reverse()).toEqual(names);
});

test("only identical entries are numbered", () => {
  const [first, second] = named(["/a/x", "/a/x"]);
  expect(second).toBe(`${first}-2`);
});

test("any command gives a valid name", () => {
  const long = "x".repeat(5000);
  for (const command of [long, `/${long}/${long} ${long}`, "((((", "$(", "'", "....", "- - -", "🎉 🎉", "", "\\"]) {
    expect(nameOf(namePrefix(`/etc/cron.d/${long}`), command)).toMatch(/^[a-z0-9][a-z0-9._:-]{0,199}$/i);
    expect(nameOf(namePrefix("/etc/🎉"), command)).toMatch(/^[a-z0-9][a-z0-9._:-]{0,199}$/i);
  }
});

test.each([
  ["/etc/cron.d/php", "php"],
  ["crontab", "crontab"],
  ["backup.crontab", "backup"],
  ["/x/.hidden", "hidden"],
  ["C:\\My Tab.txt", "c-my-tab"],
  ["", "crontab"],
])("the prefix of %j", (path, prefix) => {
  expect(namePrefix(path)).toBe(prefix);
});
