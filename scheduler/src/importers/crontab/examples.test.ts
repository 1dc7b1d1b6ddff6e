import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { nextSlots } from "../../schedule/schedule.ts";
import { defineTask } from "../../task/task.ts";
import { importCrontab } from "./crontab.ts";

const folder = new URL("../../../../examples/crontabs/", import.meta.url).pathname;
const bytesOf = (path: string) => readFileSync(join(folder, path));
const read = (path: string, shell: boolean) =>
  importCrontab({ path: `/${path}`, text: bytesOf(path).toString() }, { zone: "Europe/Berlin", shell });

/**
 * The expected counts for each file: `entries`; `plain`, the entries that need no shell; `lost`, the problems that remain when a shell is
 * permitted.
 */
const expected: Record<string, { entries: number; plain: number; lost: number; names: string[] }> = {
  "etc/crontab": {
    entries: 4,
    plain: 0,
    lost: 0,
    names: ["hourly", "daily", "weekly", "monthly"].map((often) => `crontab-run-parts-report-cron.${often}`),
  },
  "etc/cron.d/amavisd-new": {
    entries: 2,
    plain: 0,
    lost: 0,
    names: ["amavisd-new-cronjob-sa-sync", "amavisd-new-cronjob-sa-clean"],
  },
  "etc/cron.d/anacron": { entries: 1, plain: 0, lost: 0, names: ["anacron-invoke-rc.d"] },
  "etc/cron.d/atop": { entries: 1, plain: 0, lost: 0, names: ["atop.daily"] },
  "etc/cron.d/awstats": { entries: 2, plain: 0, lost: 0, names: ["awstats-update.sh", "awstats-buildstatic.sh"] },
  "etc/cron.d/cacti": { entries: 1, plain: 0, lost: 0, names: ["cacti-poller.php"] },
  "etc/cron.d/certbot": { entries: 1, plain: 0, lost: 0, names: ["certbot"] },
  "etc/cron.d/cricket": { entries: 1, plain: 0, lost: 0, names: ["cricket-collect-subtrees"] },
  "etc/cron.d/e2scrub_all": { entries: 2, plain: 0, lost: 0, names: ["e2scrub_all-e2scrub_all_cron", "e2scrub_all"] },
  "etc/cron.d/logcheck": { entries: 2, plain: 0, lost: 1, names: ["logcheck"] },
  "etc/cron.d/mailman3": {
    entries: 2,
    plain: 0,
    lost: 0,
    names: ["mailman3-mailman-notify", "mailman3-mailman-digests-periodic"],
  },
  "etc/cron.d/mdadm": { entries: 1, plain: 0, lost: 0, names: ["mdadm-checkarray"] },
  "etc/cron.d/munin": {
    entries: 4,
    plain: 0,
    lost: 0,
    names: ["munin-cron", "munin-limits", "munin-find-htmldir-type-f-name", "munin-find-cgitmpdir-type-f-mtime"],
  },
  "etc/cron.d/munin-node": { entries: 1, plain: 0, lost: 0, names: ["munin-node-apt_all"] },
  "etc/cron.d/ntpsec": { entries: 1, plain: 0, lost: 0, names: ["ntpsec-rotate-stats"] },
  "etc/cron.d/php": { entries: 1, plain: 0, lost: 0, names: ["php-sessionclean"] },
  "etc/cron.d/roundcube-core": {
    entries: 2,
    plain: 0,
    lost: 0,
    names: ["roundcube-core-cleandb.sh", "roundcube-core-gc.sh"],
  },
  "etc/cron.d/rsnapshot": { entries: 0, plain: 0, lost: 0, names: [] },
  "etc/cron.d/sysstat": { entries: 2, plain: 0, lost: 0, names: ["sysstat-debian-sa1-1-1", "sysstat-debian-sa1-60-2"] },
  "usr/share/doc/sysstat/examples/crontab": { entries: 2, plain: 2, lost: 0, names: ["crontab-sa1", "crontab-sa2"] },
};

test("every file is listed here and in the README, and is what Debian ships", () => {
  const found = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name !== "README.md")
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length));
  expect(found.sort()).toEqual(Object.keys(expected).sort());
  const readme = bytesOf("README.md").toString();
  for (const path of found) {
    const digest = createHash("sha256").update(bytesOf(path)).digest("hex").slice(0, 16);
    expect(readme).toMatch(new RegExp(`\\| \`${path}\` \\|.*\\| \`${digest}\` \\|`));
  }
});

describe("each file imports in full: every entry is a task or a problem", () => {
  test.each(Object.entries(expected))("%s", (path, { entries, plain, lost, names }) => {
    const without = read(path, false);
    expect(without.format).toBe(path.startsWith("etc/") ? "system" : "user");
    expect([without.tasks.length, without.problems.length]).toEqual([plain, entries - plain]);
    const shelled = read(path, true);
    expect([shelled.tasks.length, shelled.problems.length]).toEqual([entries - lost, lost]);
    expect(shelled.tasks.map(({ name }) => name)).toEqual(names);
    for (const { name, schedule, command, description } of shelled.tasks) {
      expect(defineTask(name, { schedule, command, description }).command).toEqual(command);
    }
  });

  test("33 entries in total: 2 import without a shell, 32 with one", () => {
    const all = Object.keys(expected);
    const count = (shell: boolean) => all.reduce((sum, path) => sum + read(path, shell).tasks.length, 0);
    expect([count(false), count(true)]).toEqual([2, 32]);
    const names = all.flatMap((path) => read(path, true).tasks.map(({ name }) => name));
    expect(new Set(names).size).toBe(names.length);
  });
});

test("mdadm's command is passed on as the shell would get it: \\% becomes a percent sign", () => {
  expect(read("etc/cron.d/mdadm", true).tasks[0]?.command).toEqual({
    argv: [
      "/bin/sh",
      "-c",
      "if [ -x /usr/share/mdadm/checkarray ] && [ $(date +%d) -le 7 ]; then /usr/share/mdadm/checkarray --cron --all --idle --quiet; fi",
    ],
    cwd: "~",
    user: "root",
  });
});

// Berlin's clocks change from UTC+1 to UTC+2 at 02:00 on Sunday, 30 March 2025.
test.each([
  ["etc/crontab", 2, ["2025-03-30T04:47:00Z", "2025-04-06T04:47:00Z"]],
  ["etc/crontab", 3, ["2025-04-01T04:52:00Z", "2025-05-01T04:52:00Z", "2025-06-01T04:52:00Z"]],
  ["etc/cron.d/amavisd-new", 0, ["2025-03-29T23:18:00Z", "2025-03-30T01:18:00Z", "2025-03-30T04:18:00Z"]],
  // 01:24 exists on 30 March; 02:30 does not.
  ["etc/cron.d/amavisd-new", 1, ["2025-03-30T00:24:00Z", "2025-03-30T23:24:00Z"]],
  ["etc/cron.d/mdadm", 0, ["2025-03-29T23:57:00Z", "2025-04-05T22:57:00Z"]],
  ["etc/cron.d/e2scrub_all", 0, ["2025-03-30T01:30:00Z", "2025-04-06T01:30:00Z"]],
  ["etc/cron.d/php", 0, ["2025-03-29T23:09:00Z", "2025-03-29T23:39:00Z", "2025-03-30T00:09:00Z"]],
  ["etc/cron.d/sysstat", 0, ["2025-03-29T23:05:00Z", "2025-03-29T23:15:00Z"]],
  ["etc/cron.d/anacron", 0, ["2025-03-30T05:30:00Z", "2025-03-30T06:30:00Z"]],
  ["usr/share/doc/sysstat/examples/crontab", 1, ["2025-03-29T23:07:00Z", "2025-03-30T22:07:00Z"]],
] as const)("next slots: %s, task %i", (path, at, slots) => {
  const schedule = read(path, true).tasks[at]?.schedule;
  if (schedule === undefined) expect.fail("no such task");
  const midnight = Date.parse("2025-03-29T23:00:00Z");
  expect(nextSlots(schedule, midnight, slots.length)).toEqual(slots.map((slot) => Date.parse(slot)));
});
