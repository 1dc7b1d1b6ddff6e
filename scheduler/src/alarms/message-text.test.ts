import { describe, expect, it } from "vitest";
import { type AlarmMessage, alarmRules, ruleWords, testMessage } from "./alarms.ts";
import { messageText } from "./message-text.ts";

describe("a message", () => {
  const message = {
    kind: "raised" as const,
    rule: "failed" as const,
    words: "runs failed",
    atMs: 0,
    sinceMs: 0,
    total: 12,
    news: 3,
    moreSubjects: 7,
  };
  const subjects = [
    { task: "settle", count: 3, text: "no route", run: 42 },
    { task: "beat", count: 1, text: "refused", run: null },
  ];
  it("has the rule, the tasks, the counts and the start time", () => {
    const { subject, text } = messageText({ ...message, subjects });
    expect(subject).toBe("runs failed: settle, beat, …");
    expect(text).toBe(
      "Since 1970-01-01T00:00:00.000Z; 12 so far.\n- settle (3 times): no route [run 42]\n- beat: refused\n- and 7 more tasks\n\nSee carillon alarms, carillon doctor.",
    );
    expect(messageText({ ...message, kind: "cleared", subjects }).subject).toBe("all clear: runs failed (12 in all)");
    expect(messageText({ ...message, kind: "summary", subjects: [] }).subject).toBe("still: runs failed (3 more)");
  });

  it("names the owner of each task that has one", () => {
    const owned = [
      { task: "settle", owner: "payments", count: 3, text: "no route", run: 42 },
      { task: "beat", owner: "ann", count: 1, text: "refused", run: null },
    ];
    const lines = (language: "en" | "zh") =>
      messageText({ ...message, subjects: owned }, { language, zone: "UTC" })
        .text.split("\n")
        .slice(1, 3);
    expect(lines("en")).toEqual([
      "- settle (owner payments, 3 times): no route [run 42]",
      "- beat (owner ann): refused",
    ]);
    expect(lines("zh")).toEqual([
      "- settle（负责人 payments，3 次）：no route [执行记录 42]",
      "- beat（负责人 ann）：refused",
    ]);
  });

  const shanghai = { language: "zh", zone: "Asia/Shanghai" } as const;

  it("is in Chinese with times of the configured zone; a run's error text stays unchanged", () => {
    const { subject, text } = messageText({ ...message, subjects, silenced: 2 }, shanghai);
    expect(subject).toBe("执行失败：settle、beat等");
    expect(text).toBe(
      "始于 1970-01-01 08:00:00 (Asia/Shanghai)；至今 12 次。\n- settle（3 次）：no route [执行记录 42]\n- beat：refused\n- 另有 7 个任务\n- 未解除且已静默：2\n\n详情：carillon alarms、carillon doctor。",
    );
    expect(messageText({ ...message, kind: "cleared", subjects }, shanghai).subject).toBe(
      "已解除：执行失败（共 12 次）",
    );
    expect(messageText({ ...message, kind: "summary", subjects: [] }, shanghai).subject).toBe(
      "持续告警：执行失败（新增 3 次）",
    );
    const quoted = [{ task: "a", count: 1, text: "no answer since 1970-01-01T00:00:00Z", run: null }];
    expect(messageText({ ...message, subjects: quoted }, shanghai).text).toContain("since 1970-01-01T00:00:00Z");
    expect(messageText(testMessage("ada", 0), shanghai)).toEqual({
      subject: "ada 发出的测试：一切正常",
      text: "Carillon 的告警消息可以送达此处。",
    });
  });

  it("translates the rule's own text, and shows its times in the configured zone", () => {
    const of = (rule: AlarmMessage["rule"], text: string, zone: string, language: "en" | "zh" = "zh") =>
      messageText(
        { ...message, rule, moreSubjects: 0, subjects: [{ task: "", count: 1, text, run: null }] },
        { language, zone },
      ).text.split("\n")[1];
    const since = "the oldest is due since 2026-11-30T01:00:00Z, and waits for";
    const due = `${since} a worker of group mail: start one, or give the group's workers more room`;
    const chinese = "正在等待组 mail 的工作进程：请启动一个，或为该组的工作进程增加容量";
    expect(of("overdue", due, "Asia/Shanghai")).toBe(
      `- 最早的一个自 2026-11-30 09:00:00 (Asia/Shanghai) 起到期，${chinese}`,
    );
    expect(of("overdue", due, "UTC")).toBe(`- 最早的一个自 2026-11-30T01:00:00Z 起到期，${chinese}`);
    expect(of("overdue", due, "Europe/Berlin", "en")).toMatch(
      /^- the oldest is due since 2026-11-30 02:00:00 \(Europe\/Berlin\), and waits/,
    );
    for (const [rule, text] of [
      ["overdue", `${since} the limit of its group mail, 5 at once: raise it, or give the group less to do`],
      ["overdue", `${since} its task's limit, 2 at once per worker: raise it, or start more workers`],
      ["overdue", `${since} its task's own limit, 3 at once, 10 in 60 s: raise it, or enqueue less`],
      ["late", "started up to 200 s late"],
      ["unfired", "slots were given up by the task's misfire policy"],
      ["unfired", "a slot came due and was not planned: 2026-11-30T01:00:00Z"],
      ["stuck", "its worker is gone, and it was not taken back"],
      ["stuck", "claimed, and never started"],
      ["stuck", "past its timeout"],
      ["leaderless", "slots are planned a moment ahead only, by whoever is left; see carillon nodes"],
      ["ended", "no slot is left: give it another schedule, or remove it"],
    ] as const)
      expect(of(rule, text, "UTC"), text).toMatch(/\p{Script=Han}/u);
    expect(of("late", "a sentence of a newer version", "UTC")).toBe("- a sentence of a newer version");
  });

  it.each([
    [
      "half of the last statements took longer: two 2s500ms, one 1s",
      "最近的语句有一半耗时超过：two 2 秒 500 毫秒；one 1 秒",
    ],
    [
      "dead rows are kept by: transaction (app, pid 7) for 1h2m, standby (copy, pid 8) for 5 transactions, prepared (gid) for 3d, slot (s) for 120000 transactions",
      "以下对象使死行无法清理：事务（app，进程号 7），已持续 1 小时 2 分钟；备库（copy，进程号 8），已持续 5 个事务；预备事务（gid），已持续 3 天；复制槽（s），已持续 120000 个事务",
    ],
    [
      "without coordination service: a for 2m, b for 1m, and 3 more",
      "与协调服务失去联系：a 已持续 2 分钟；b 已持续 1 分钟；另有 3 项",
    ],
    [
      "expires soon or has expired: token ci of ann at 2026-11-30T01:00:00.000Z, worker key edge at 2026-11-30T02:00:00.000Z, certificate /c.pem of node at 2026-11-30T03:00:00.000Z",
      "即将到期或已到期：ann 的令牌 ci（2026-11-30 09:00:00 (Asia/Shanghai)）；工作进程密钥 edge（2026-11-30 10:00:00 (Asia/Shanghai)）；node 的证书 /c.pem（2026-11-30 11:00:00 (Asia/Shanghai)）",
    ],
    [
      "without coordination service: a for 2m, something of a newer version",
      "与协调服务失去联系：a 已持续 2 分钟；something of a newer version",
    ],
  ])("translates lists of the cluster's parts, so that only names are left: %s", (text, translated) => {
    const subjects = [{ task: "", count: 1, text, run: null }];
    const lines = messageText({ ...message, rule: "mine", moreSubjects: 0, subjects }, shanghai).text.split("\n");
    expect(lines[1]).toBe(`- ${translated}`);
  });

  it("has Chinese text for every rule", () => {
    for (const rule of alarmRules)
      expect(messageText({ ...message, rule, words: ruleWords[rule], subjects: [] }, shanghai).subject).toMatch(
        /^\p{Script=Han}+/u,
      );
  });
});
