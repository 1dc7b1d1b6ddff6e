import { expect, test } from "vitest";
import { detectFormat, spoolAccount } from "./format.ts";

const user = "*/5 * * * * /opt/run a b\n";

test("the file's path decides the format", () => {
  for (const path of ["/etc/crontab", "/etc/cron.d/x", "etc/cron.d/x", "/chroot/etc/crontab"]) {
    expect(detectFormat(path, user)).toBe("system");
  }
  expect(detectFormat("/var/spool/cron/crontabs/anna", "0 0 * * * root x\n")).toBe("user");
  expect(spoolAccount("/var/spool/cron/crontabs/anna")).toBe("anna");
  expect(spoolAccount("/var/spool/cron/anna")).toBe("anna");
  expect(spoolAccount("/etc/crontab")).toBeNull();
});

test("otherwise the content decides: every entry must name an account", () => {
  expect(detectFormat("x", user)).toBe("user");
  expect(detectFormat("x", "# only comments\nA=b\n")).toBe("user");
  expect(detectFormat("x", "A=b\n*/5 * * * *\troot\t/opt/run\n@daily www-data x\n-5 4 * * sun munin y\n")).toBe(
    "system",
  );
  expect(detectFormat("x", "*/5 * * * * root /opt/run\n0 0 * * * find /x\n")).toBe("user");
  // If nothing follows "root", it may be the command itself, so the format is the user format.
  expect(detectFormat("x", "*/5 * * * * root\n")).toBe("user");
  expect(detectFormat("x", "0 0 * * * anna /opt/run\n")).toBe("user");
  expect(detectFormat("x", "0 0 * * * anna /opt/run\n", ["anna"])).toBe("system");
  expect(detectFormat("x", "17 * * * * root /opt/a\n*/11 * * * * operator /opt/b\n0 1 * * * ubuntu /opt/c\n")).toBe(
    "system",
  );
});
