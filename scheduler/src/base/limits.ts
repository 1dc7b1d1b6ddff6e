/** The limits of inputs, answers and stored data. A name says what is counted, or contains the unit. */
export const limits = {
  /** The largest size of a payload or a result, as UTF-8 JSON. */
  payloadBytes: 256 * 1024,
  /** The greatest depth of a payload, a result, or any other stored JSON, because some parsers overflow their stack on deeper values. */
  jsonDepth: 200,
  taskNameLength: 200,
  groupNameLength: 100,
  ownerLength: 100,
  nodeNameLength: 100,
  calendarNameLength: 100,
  secretNameLength: 100,
  /** The longest name of a stored alarm rule; and the number of stored rules, which is limited because each check evaluates all of them. */
  alarmRuleNameLength: 100,
  alarmRules: 200,
  /**
   * The longest name of an incoming webhook; the number of webhooks, in all and in one namespace; and the number of entries of a webhook's
   * `task.of` and of its `payload`. The numbers are limited because each server caches all webhooks.
   */
  hookNameLength: 100,
  hooks: 200,
  hooksOfNamespace: 50,
  hookEntries: 100,
  /** The longest reason for a change. */
  reasonLength: 1_000,
  /** The longest fingerprint; a fingerprint groups dead letters that failed for the same reason. */
  fingerprintLength: 100,
  keyLength: 200,
  /** The largest concurrency limit of a group. */
  groupRuns: 100_000,
  /** The number of shards of one run. */
  shards: 1_000,
  /** The number of upstream tasks of one task. */
  upstreamTasks: 100,
  /** The number of children of one run. */
  children: 10_000,
  /** The number of children that one statement creates, or that one poll of a remote worker requests. */
  childrenAtOnce: 1_000,
  /** In one answer to a remote worker: the number of a run's inputs, and the bytes of their results and errors. */
  inputsPerPoll: 1_000,
  inputBytesPerPoll: 8 * 1024 * 1024,
  /** In one answer: the number of groups of dead letters, largest first; and the number of tasks that are listed for each group. */
  deadGroups: 1_000,
  deadGroupTasks: 100,
  /** The number of grants of one user, and of namespaces of one token. */
  grants: 1_000,
  /**
   * The number of task definitions that a process caches, about 1 to 2 kB each. At least the most recently used half of this
   * number stays in the cache; other definitions are read from the store again.
   */
  definitionsKept: 250_000,
  lockNameLength: 200,
  /** The number of permits of one semaphore. */
  permits: 1_000,
  /** The number of holders and waiters of one lock on PostgreSQL. */
  lockLine: 10_000,
  cronTextLength: 256,
  /** The longest text of a schedule in English. */
  phraseLength: 2_000,
  /** The longest RRULE with its date lines; and the number of dates that it adds, and of dates that it excludes. */
  ruleTextLength: 40_000,
  ruleDates: 1_000,
  /** The largest COUNT of an RRULE, because finding the last occurrence visits all of them. */
  ruleCount: 10_000,
  /** The number of holidays of one calendar. */
  calendarDays: 5_000,
  /**
   * In a comparison of two versions of a calendar: the number of tasks, of days ahead, and of a task's slots that are compared; and the
   * number of its slots that are listed.
   */
  comparedTasks: 100,
  comparedDays: 366,
  comparedSlots: 2_000,
  comparedSlotsShown: 50,
  /** The size of a calendar's file; and the number of days that its rules produce, before exclusions. */
  icsBytes: 1024 * 1024,
  icsOccurrences: 8_000,
  /** The longest time in ms for parsing a calendar's file and for checking a payload, because both block the event loop. */
  icsMs: 2_000,
  payloadCheckMs: 500,
  /** The number of blackout windows of one task. */
  blackoutWindows: 100,
  /** The largest jitter: a slot is due at most this many ms after its nominal time. */
  jitterMs: 86_400_000,
  /** The longest delay between two attempts of a run; with a longer delay the next attempt could be at a time that no Date can express. */
  retryDelayMs: 366 * 86_400_000,
  /** The shortest period of a fixed rate; it bounds the number of a task's slots that are planned ahead. */
  shortestPeriodMs: 100,
  /** No slot is planned after this year; a cron whose next slot is later is an error. */
  lastYear: 2200,
  /** The size of a crontab to import. */
  crontabBytes: 1024 * 1024,
  /** The size of a file of tasks, or of an export of another scheduler. */
  taskFileBytes: 8 * 1024 * 1024,
  /** For metrics, runs per state are counted up to this number; a figure of this size means "that many or more". */
  countedRuns: 100_000,
  /** Metrics show this many groups by name. */
  shownGroups: 50,
  /** The number of slots that one simulation visits. */
  simulatedSlots: 1_000_000,
  /** For one timeline of all tasks: the number of slots visited, of days, and of tasks in one answer. */
  timelineSlots: 300_000,
  timelineDays: 14,
  timelineTasks: 200,
  /** The number of days, and of events, of one calendar feed. */
  feedDays: 90,
  feedEvents: 2_000,
  /** The number of slots of one backfill; and the number of slots that are visited without yielding to other work. */
  backfillSlots: 10_000_000,
  backfillSlotsAtOnce: 2_000,
  /** The longest payload schema of a task, as JSON. */
  payloadSchemaLength: 32 * 1024,
  crontabLineLength: 16 * 1024,
  /** The bytes of one line of a command's output; the rest of the line is dropped, and the line is marked as cut. */
  commandLineBytes: 16 * 1024,
  /** The bytes of all output of one command; further output is read and counted, but dropped. */
  commandOutputBytes: 4 * 1024 * 1024,
  /** The number of last lines of stderr that the error of a failed command quotes, as far as they fit into its message. */
  commandLastLines: 10,
  /** The time between SIGTERM and SIGKILL for a command, in ms. */
  commandGraceMs: 10_000,
  /**
   * The bytes of an HTTP task's response that are read; the rest is not read. Even if JSON has to escape each of these bytes, the result is
   * below `payloadBytes`.
   */
  httpBodyBytes: 32 * 1024,
  /** The longest URL of an HTTP task, and the longest header. */
  urlLength: 8_000,
  /** The bytes of one request of a remote worker, after decompression. */
  pollBytes: 16 * 1024 * 1024,
  /** A poll waits at most this many ms, because some proxies close a connection after 30 s of silence. */
  pollWaitMs: 25_000,
  /** The longest session timeout of a remote worker: after this silence in ms it is presumed dead. */
  workerTimeoutMs: 60_000,
  /** A remote worker may claim a run at most this many ms before the run is due. */
  pollAheadMs: 60_000,
  /** The number of claims, of verdicts, or of log lines in one poll. */
  runsPerPoll: 2_000,
  /** The number of labels of one remote worker. */
  labels: 32,
  /**
   * The number of labels of a run that an enqueue sets, or that a task sets for all its runs; and the longest name and value of a label.
   */
  runLabels: 16,
  runLabelNameLength: 63,
  runLabelLength: 200,
  /** The number of claims of one remote worker. */
  heldPerSession: 20_000,
  /** The greatest age in ms of an event that a remote worker reports. */
  agoMs: 366 * 86_400_000,
  /** The longest time in ms by which a handler can postpone the next attempt of its run. */
  postponedMs: 366 * 86_400_000,
  /** The number of times that a run can be snoozed. */
  snoozes: 1_000,
  /**
   * A run's end or a log line that is older than this many ms is recorded with this age, because the partition of that day certainly
   * exists: it is created at the first start, and is not dropped so early.
   */
  writtenAgoMs: 86_400_000,
  /** The size of one request to the API; and of a request that contains many runs, or a calendar's file. */
  requestBytes: 1024 * 1024,
  largeRequestBytes: 16 * 1024 * 1024,
  /** The number of runs that one request enqueues. */
  runsPerRequest: 2_000,
  /** The number of tasks of a bundle that one request plans or applies; each is a transaction, and the caller waits for all of them. */
  tasksPerPlan: 2_000,
  /** The number of event streams that one server has open at once. */
  streams: 200,
  /** The greatest age in ms of a sign-in with which a user may end the user's other sign-ins. */
  freshSignInMs: 600_000,
  /** The number of event streams that one user may have open. */
  streamsPerUser: 50,
  /** The number of live sessions of one worker key. */
  sessionsPerKey: 500,
  /**
   * The largest value of any quota; and the number up to which a namespace's waiting runs are counted if only their bytes have a quota.
   */
  quota: 1_000_000_000_000,
  countedWaiting: 1_000_000,
  /**
   * The number of tasks up to which a list of runs queries task by task, if it is restricted to a group, to namespaces or to a
   * pattern of task names. With more tasks, it reads all runs in order and filters them.
   */
  tasksProbed: 100,
  /**
   * As `tasksProbed`, for a list that filters by source or labels, which has to read and filter many runs of each task in one statement.
   */
  tasksProbedWithTests: 10,
  /** The number of unfinished runs, and of ended runs of each outcome, that one statement of a list reads to find matching runs. */
  liveRunsLookedAt: 500,
  endedRunsLookedAt: 2_000,
  /** In one answer: the number of tasks whose last runs are listed. */
  recentTasks: 100,
  /** In one answer: the number of runs that are explained. */
  explainedRuns: 100,
  /** In one answer: the number of last runs of each task; and the number of tasks that fire next. */
  recentRuns: 100,
  comingTasks: 200,
  /** In one answer: the number of tasks of a graph of tasks. */
  flowTasks: 300,
  /** The number of failed runs that are grouped by their reasons for one answer, and of groups in it. */
  failuresRead: 2_000,
  failureGroups: 50,
  /** In one answer: the number of runs of a run's family (its ancestors and descendants). */
  familyRuns: 300,
  passwordLength: 1_000,
  /** The largest size of a secret's value. */
  secretBytes: 32 * 1024,
  /** The shortest secret; a shorter one could not be distinguished from other text in a log. */
  secretLeastLength: 8,
  /** The number of secret values that one process remembers, to redact them in its output. */
  secretsRemembered: 1_000,
  /** The number of data keys of secrets, and also of second factors, that one transaction encrypts again with a new key. */
  secretsAtOnce: 500,
  /** The longest message of a handler's error; the end of a longer message is cut. */
  errorMessageLength: 2_000,
  /** The longest message or stack that a remote worker reports, and the longest message of a CarillonError. */
  errorTextLength: 16 * 1024,
  /**
   * The length of an MCP tool's result as JSON; and in it the longest text, the longest JSON value of a user, and the longest list without
   * pages.
   */
  mcpAnswerCharacters: 60_000,
  mcpTextCharacters: 2_000,
  mcpValueCharacters: 4_000,
  mcpListItems: 500,
  /** In a result of an MCP tool: the number of items of one page, of slots, and of tasks of one simulation. */
  mcpPageItems: 50,
  mcpSlots: 200,
  mcpSimulatedTasks: 50,
  /** The number of workers that one explanation of a run considers. */
  countedWorkers: 2_000,

  /** The number of confirmations that an MCP server keeps open at once, and the time in ms for which each is valid. */
  confirmations: 100,
  confirmationMs: 300_000,
} as const;
