import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { limits } from "../../base/limits.ts";
import { nextSlots } from "../../schedule/schedule.ts";
import { defineTask } from "../../task/task.ts";
import { type CrontabOptions, importCrontab } from "./crontab.ts";

const read = (text: string, options: Partial<CrontabOptions> = {}, path = "tab") =>
  importCrontab({ path, text }, { zone: "Europe/Berlin", ...options });
const only = (text: string, options: Partial<CrontabOptions> = {}, path = "tab") => {
  const { tasks, problems } = read(text, options, path);
  expect(problems).toEqual([]);
  expect(tasks).toHaveLength(1);
  return tasks[0] as (typeof tasks)[0];
};
const problem = (text: string, options: Partial<CrontabOptions> = {}, path = "tab") => {
  const { tasks, problems } = read(text, options, path);
  expect(tasks).toEqual([]);
  expect(problems).toHaveLength(1);
  return problems[0] as (typeof problems)[0];
};
const slots = (text: string, after: string, count: number, options: Partial<CrontabOptions> = {}) =>
  nextSlots(only(text, options).schedule, Date.parse(after), count).map((slot) => new Date(slot).toISOString());

describe("entries", () => {
  test("six or seven time fields are refused: the second would be read as the minute", () => {
    for (const options of [{}, { shell: true }])
      for (const text of ["0 0 2 * * * /opt/nightly\n", "*/30 0 1-5 * 1 2026 /opt/a b\n"])
        expect(problem(text, options).message).toBe("it has six or seven time fields, and cron's have five");
    expect(only("0 2 * * * 7z a x\n").command.argv[0]).toBe("7z");
  });

  test("an account before the program is not taken for a program, and a guess is reported", () => {
    const mixed = "17 * * * * root /opt/hourly\n*/5 * * * * /opt/poll\n";
    const { tasks, problems } = read(mixed);
    expect(tasks.map(({ command }) => command.argv)).toEqual([["/opt/poll"]]);
    expect(problems).toMatchObject([{ line: 1, message: "root before the program looks like an account" }]);
    expect(read(mixed, { format: "user" }).tasks).toHaveLength(2);
    expect(read(mixed, {}, "/var/spool/cron/anna").problems).toEqual([]);
    expect(only("0 2 * * * git pull\n", { format: "user" }).command.argv).toEqual(["git", "pull"]);

    const guessed = read("*/5 * * * * ubuntu /opt/poll\n0 1 * * * root /opt/b\n");
    expect(guessed.tasks.map(({ command }) => command.user)).toEqual(["ubuntu", "root"]);
    expect(guessed.notes).toMatchObject([
      { line: 1, message: expect.stringContaining("sixth field is an account (ubuntu, root); if these are programs") },
    ]);
    for (const named of [
      read("0 1 * * * root /opt/b\n", { format: "system" }),
      read("0 1 * * * root /opt/b\n", {}, "/etc/crontab"),
    ])
      expect(named.notes).toEqual([]);
  });

  test("a user's entry is read completely", () => {
    const text = `SHELL=/bin/bash\nPATH = "/usr/bin:/bin"\nHOME=/home/anna\n# nightly\n5 0 * * 1-5\tLANG=C /opt/report 'last night' -o out.txt\n`;
    expect(only(text, {}, "/var/spool/cron/crontabs/anna")).toEqual({
      name: "anna-report",
      schedule: { type: "cron", expression: "5 0 * * 1-5", zone: "Europe/Berlin", gap: "shift", overlap: "first" },
      command: {
        argv: ["/opt/report", "last night", "-o", "out.txt"],
        env: { SHELL: "/bin/bash", PATH: "/usr/bin:/bin", HOME: "/home/anna", LANG: "C" },
        cwd: "/home/anna",
        user: "anna",
      },
      description: "/var/spool/cron/crontabs/anna: 5 0 * * 1-5\tLANG=C /opt/report 'last night' -o out.txt",
      line: 5,
      needsShell: false,
    });
  });

  test("the system's sixth field is the account", () => {
    expect(only("@daily www-data /opt/run %hello\n", { format: "system" }).command).toEqual({
      argv: ["/opt/run"],
      cwd: "~",
      stdin: "hello\n",
      user: "www-data",
    });
    expect(problem("0 0 * * * /opt/run x\n", { format: "system" }).message).toMatch(/"\/opt\/run" stands where/);
    expect(problem("0 0 * * * root\n", { format: "system" }).message).toMatch(/no command/);
    expect(problem("0 0 * * *\n", { format: "system" }).message).toMatch(/no account/);
  });

  test("each entry has exactly the environment set above it", () => {
    const { tasks } = read("0 0 * * * /a\nX=1\n0 0 * * * /b\nX='two '\nY=\n0 0 * * * /c\n");
    expect(tasks.map(({ command }) => command.env)).toEqual([undefined, { X: "1" }, { X: "two ", Y: "" }]);
  });

  test("the scheduler accepts every imported task", () => {
    const { tasks } = read("A=b\nRANDOM_DELAY=5\n@hourly /a %in\n0~59 3 1 * fri /b\n");
    expect(tasks).toHaveLength(2);
    for (const { name, schedule, command, description } of tasks) {
      expect(defineTask(name, { schedule, command, description })).toMatchObject({ name, schedule, command });
    }
  });

  test("any line ends, a missing last newline, a byte order mark, tabs and a leading minus are accepted", () => {
    const { tasks, problems, notes } = read("\uFEFFA=b\r\n \t 0\t0 *  * *\t/a x \r\n-@daily /b\r\n@daily /c\r");
    expect(problems).toEqual([]);
    expect(tasks.map(({ line, command }) => [line, command])).toEqual([
      [2, { argv: ["/a", "x"], env: { A: "b" }, cwd: "~" }],
      [3, { argv: ["/b"], env: { A: "b" }, cwd: "~" }],
      [4, { argv: ["/c"], env: { A: "b" }, cwd: "~" }],
    ]);
    expect(notes.map(({ line }) => line)).toEqual([1, 2, 3, 4]);
  });
});

describe("schedules", () => {
  test("two restricted day fields match either day; with a star, both must match", () => {
    expect(slots("30 4 1,15 * 5 /a\n", "2024-05-29T00:00:00Z", 4)).toEqual([
      "2024-05-31T02:30:00.000Z",
      "2024-06-01T02:30:00.000Z",
      "2024-06-07T02:30:00.000Z",
      "2024-06-14T02:30:00.000Z",
    ]);
    // Cron treats a day field that begins with a star as unrestricted, so both fields must match: odd days that are Mondays.
    expect(slots("0 12 */2 * 1 /a\n", "2024-06-01T00:00:00Z", 2)).toEqual([
      "2024-06-03T10:00:00.000Z",
      "2024-06-17T10:00:00.000Z",
    ]);
  });

  test("at a change of clocks, fixed times fire once, and starred ones fire by elapsed time", () => {
    expect(slots("30 2 * * * /a\n", "2024-03-30T12:00:00Z", 2)).toEqual([
      "2024-03-31T01:30:00.000Z",
      "2024-04-01T00:30:00.000Z",
    ]);
    expect(slots("30 2 * * * /a\n", "2024-10-26T12:00:00Z", 2)).toEqual([
      "2024-10-27T00:30:00.000Z",
      "2024-10-28T01:30:00.000Z",
    ]);
    expect(slots("30 * * * * /a\n", "2024-03-31T00:00:00Z", 2)).toEqual([
      "2024-03-31T00:30:00.000Z",
      "2024-03-31T01:30:00.000Z",
    ]);
    expect(slots("30 * * * * /a\n", "2024-10-27T00:00:00Z", 3)).toEqual([
      "2024-10-27T00:30:00.000Z",
      "2024-10-27T01:30:00.000Z",
      "2024-10-27T02:30:00.000Z",
    ]);
    expect(only("*/30 2 * * * /a\n").schedule).toMatchObject({ gap: "skip", overlap: "both" });
  });

  test("CRON_TZ applies from its line on; TZ is passed to the command", () => {
    const { tasks, notes } = read("@daily /a\nCRON_TZ=asia/tokyo\nTZ=America/Lima\n@daily /b\nCRON_TZ=\n@daily /c\n");
    expect(tasks.map(({ schedule }) => schedule)).toMatchObject([
      { zone: "Europe/Berlin" },
      { zone: "Asia/Tokyo" },
      { zone: "Europe/Berlin" },
    ]);
    expect(tasks[1]?.command.env).toEqual({ TZ: "America/Lima" });
    expect(notes).toEqual([{ line: 3, message: expect.stringContaining("CRON_TZ") }]);
  });

  test("an invalid CRON_TZ makes the entries below it problems, up to a valid CRON_TZ", () => {
    const { tasks, problems } = read("CRON_TZ=Mars/Olympus\n@daily /a\nCRON_TZ=UTC\n@daily /b\n");
    expect(tasks.map(({ line }) => line)).toEqual([4]);
    expect(problems).toMatchObject([
      {
        line: 1,
        text: "CRON_TZ=Mars/Olympus",
        code: "CRONTAB_INVALID",
        message: expect.stringContaining("Mars/Olympus"),
      },
      { line: 2, message: expect.stringContaining("on line 1, is not a zone") },
    ]);
  });

  test("~ is chosen once: it is equal at each import, noted, and spread over commands", () => {
    const text = Array.from({ length: 40 }, (_, n) => `0~59 3 * * * /opt/run ${n}\n`).join("");
    const minutes = read(text).tasks.map(
      ({ schedule }) => (schedule as { expression: string }).expression.split(" ")[0],
    );
    expect(
      read(`# moved\n\n${text}`).tasks.map(
        ({ schedule }) => (schedule as { expression: string }).expression.split(" ")[0],
      ),
    ).toEqual(minutes);
    expect(new Set(minutes).size).toBeGreaterThan(15);
    expect(read(text).notes[0]).toEqual({ line: 1, message: `chosen once and for all: minute 0~59 is ${minutes[0]}` });
  });

  test("RANDOM_DELAY becomes a jitter", () => {
    expect(only("RANDOM_DELAY=45\n@daily /a\n").schedule).toMatchObject({ jitterMs: 2_700_000 });
    expect(read("RANDOM_DELAY=x\n@daily /a\n").problems).toMatchObject([{ line: 1 }]);
  });

  test("an invalid zone is refused at once", () => {
    expect(() => read("", { zone: "Nowhere" })).toThrow(expect.objectContaining({ code: "ZONE_UNKNOWN" }));
  });
});

describe("commands that need a shell", () => {
  const text = 'SHELL=/bin/dash\n5 * * * * cd /srv && ./run > "$HOME/log"\n';
  test("are problems with a hint", () => {
    expect(problem(text)).toEqual({
      line: 2,
      text: '5 * * * * cd /srv && ./run > "$HOME/log"',
      code: "CRONTAB_INVALID",
      message: "the command needs a shell: it has cd, which the shell does itself",
      hint: expect.stringContaining("--shell"),
    });
  });
  test("become an argv of the crontab's shell if the operator enables it", () => {
    expect(only(text, { shell: true })).toMatchObject({
      command: { argv: ["/bin/dash", "-c", 'cd /srv && ./run > "$HOME/log"'], env: { SHELL: "/bin/dash" } },
      needsShell: true,
    });
    expect(problem("SHELL=bash\n@daily a | b\n", { shell: true }).message).toMatch(/not an absolute path/);
  });
  test("variables that a worker passes on only if allowed are noted, once each", () => {
    const text = "PATH=/opt/own/bin:/usr/bin\nLANG=C\n@daily report a\n@hourly LD_LIBRARY_PATH=/opt/lib /opt/run\n";
    const { tasks, problems, notes } = read(text);
    expect(problems).toEqual([]);
    expect(tasks.map(({ command, needsShell }) => [command.argv, needsShell])).toEqual([
      [["report", "a"], false],
      [["/opt/run"], false],
    ]);
    expect(tasks[0]?.command.env).toEqual({ PATH: "/opt/own/bin:/usr/bin", LANG: "C" });
    expect(notes).toEqual([
      { line: 3, message: expect.stringContaining("--allow-env PATH") },
      { line: 4, message: expect.stringContaining("--allow-env LD_LIBRARY_PATH") },
    ]);
    expect(read("PATH=/opt/own/bin\n@daily /bin/bash /opt/run\n").notes, "a shell may have any").toEqual([]);
  });
  test("every command is a problem if SHELL has other syntax rules", () => {
    expect(problem("SHELL=/usr/bin/fish\n@daily /opt/run\n").message).toMatch(/fish/);
  });
  test("commands that need no shell get none, even if shells are enabled", () => {
    expect(only("@daily /opt/run a\n", { shell: true })).toMatchObject({
      command: { argv: ["/opt/run", "a"], cwd: "~" },
      needsShell: false,
    });
  });
  test("enabling the shell renames no task", () => {
    const both = "@daily /opt/run a\n@daily /opt/run b | tee\n";
    expect(read(both).tasks[0]?.name).toBe("tab-run-a");
    expect(read(both, { shell: true }).tasks.map(({ name }) => name)).toEqual(["tab-run-a", "tab-run-b"]);
  });
});

describe("lines that cannot be imported", () => {
  test.each([
    ["@reboot /a\n", /start of a machine/],
    ["@every 5m /a\n", /@every/],
    ["61 * * * * /a\n", /minute "61"/],
    ["0 0 30 2 * /a\n", /no such date/],
    ["0 0 L * * /a\n", /cron does not know/],
    ["0 0 * * * \n", /no command/],
    ["0 0 * * * %only input\n", /no command/],
    ["0 0 * * * -s /a\n", /BSD/],
    ["0 0 * * * /a 'x\n", /not closed/],
    ["0 0 * * * A=b\n", /no program/],
    ["hello\n", /neither an entry/],
    ["0 0 * *\n", /neither an entry/],
    ["A='b\n", /not closed/],
    ['A="b" c\n', /text after/],
    ["1A=b\n", /cannot be the name/],
    ["A B=c\n", /neither an entry/],
    ["0 0 * * * /a\0b\n", /NUL/],
    [`0 0 * * * /a ${"x".repeat(limits.crontabLineLength)}\n`, /longer than/],
    [`${Array.from({ length: 200 }, () => "1").join(",")} * * * * /a\n`, /characters; at most/],
  ])("%j", (text, message) => {
    expect(problem(text)).toMatchObject({ line: 1, code: "CRONTAB_INVALID", message: expect.stringMatching(message) });
    expect(problem(text).hint).not.toBe("");
  });

  test("variables and comments that concern cron itself are noted, and not passed to the command", () => {
    const { tasks, notes } = read("MAILTO=root\nLOGNAME=x\n@daily /a # why not\n");
    expect(tasks[0]?.command).toEqual({ argv: ["/a"], cwd: "~" });
    expect(notes).toMatchObject([{ line: 1 }, { line: 2 }, { line: 3, message: expect.stringContaining("why not") }]);
  });

  test("a file that is not a crontab is refused quickly", () => {
    expect(problem("x".repeat(limits.crontabBytes + 1)).message).toMatch(/larger than/);
    const { problems } = read("\x7fELF\x02\x01\0\0".repeat(1000));
    expect(problems.length).toBeGreaterThan(0);
  });

  test("JavaScript's own property names are ordinary names", () => {
    expect(read("__proto__=x\nconstructor=y\ntoString=z\n@daily /a\n").tasks[0]?.command.env).toEqual(
      Object.fromEntries([
        ["__proto__", "x"],
        ["constructor", "y"],
        ["toString", "z"],
      ]),
    );
  });
});

test("whatever the text, each line is blank, a comment, a setting, a task or a problem; names are unique and valid", () => {
  const piece = fc.constantFrom(
    ..."* */5 0 7 1-5 mon 0~9 @daily @reboot root /bin/a b A=b CRON_TZ=UTC CRON_TZ=x SHELL=/bin/sh % \\% ' \" # & | \\".split(
      " ",
    ),
    " ",
    "\t",
    "\n",
    "\r\n",
    "\n* * * * * ",
    "\n0 0 1 * * ",
  );
  fc.assert(
    fc.property(
      fc.array(piece, { maxLength: 60 }),
      fc.boolean(),
      fc.constantFrom("user" as const, "system" as const),
      (pieces, shell, format) => {
        const text = pieces.join(" ");
        const { tasks, problems } = read(text, { shell, format });
        const told = new Set([...tasks, ...problems].map(({ line }) => line));
        for (const [at, line] of text.split("\n").entries()) {
          const silent = /^\s*(#|$)/.test(line) || /^\s*(CRON_TZ|SHELL|A)\s*=/.test(line);
          if (!silent) expect(told).toContain(at + 1);
        }
        expect(new Set(tasks.map(({ name }) => name)).size).toBe(tasks.length);
        for (const { name } of tasks) expect(name).toMatch(/^[a-z0-9][a-z0-9._:-]{0,199}$/i);
      },
    ),
  );
});
