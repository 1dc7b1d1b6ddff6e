/** Imports Kubernetes manifests of CronJobs (batch/v1), from files or from the output of `kubectl get cronjobs -o yaml`. */

import { yamlDocuments } from "../apply/yaml-documents.ts";
import { isShellName, whyRefused } from "../task/command-rules.ts";
import { eitherDay } from "./either-day.ts";
import { type FieldTable, readFields, tellFields } from "./fields.ts";
import {
  Findings,
  type ImportOptions,
  isRow,
  numberOf,
  type Row,
  rowsOf,
  type SourceFile,
  textOf,
  within,
} from "./findings.ts";

const podPath = "spec.jobTemplate.spec.template.spec";
/** The fields of each object; the importer reads or reports them, or they are about the object and not about its work. */
const objects: readonly (readonly [path: string, fields: FieldTable])[] = [
  ["", readFields("apiVersion kind metadata spec status")],
  [
    "spec",
    readFields(
      "schedule timeZone concurrencyPolicy startingDeadlineSeconds suspend jobTemplate successfulJobsHistoryLimit failedJobsHistoryLimit",
    ),
  ],
  ["spec.jobTemplate", readFields("metadata spec")],
  [
    "spec.jobTemplate.spec",
    readFields(
      "template backoffLimit activeDeadlineSeconds completions completionMode ttlSecondsAfterFinished podFailurePolicy successPolicy backoffLimitPerIndex podReplacementPolicy parallelism",
    ),
  ],
  ["spec.jobTemplate.spec.template", readFields("metadata spec")],
  [
    podPath,
    // The last two only say which scheduler places a pod, and how a pod ends.
    readFields(
      "containers nodeSelector initContainers volumes serviceAccountName serviceAccount affinity tolerations securityContext imagePullSecrets priorityClassName restartPolicy dnsPolicy schedulerName terminationGracePeriodSeconds",
    ),
  ],
];
const containerFields = readFields(
  "name image imagePullPolicy command args env workingDir resources volumeMounts envFrom securityContext livenessProbe terminationMessagePath terminationMessagePolicy",
);

const overlaps: Record<string, string | undefined> = {
  Forbid: "skip",
  Replace: "replace",
  Allow: undefined,
  "": undefined,
};
/**
 * Kubernetes' default for a manifest without a backoff limit: six retries, the first after 10 s, each later delay doubled up to six
 * minutes.
 */
const defaultBackoffLimit = 6;
const tries = { delay: "10s", maxDelay: "6m" };

export function importKubernetes(files: readonly SourceFile[], options: ImportOptions): Findings {
  const findings = new Findings(options);
  let unzoned = 0;
  for (const { path, text } of files) {
    if (/^\s*\{\{|:\s*\{\{-?\s*(?:\.|include\b|toYaml\b)/m.test(text)) {
      findings.problem(
        "",
        `${path} is a Helm template, and no manifest yet`,
        "Render it first: helm template CHART | carillon import kubernetes -",
      );
      continue;
    }
    for (const read of yamlDocuments(text)) {
      if ("problem" in read) {
        findings.problem("", `${path} is not YAML: ${read.problem}`, "Give manifests as kubectl writes them.");
        continue;
      }
      const { content } = read;
      const items =
        within(content, "kind") === "List" || within(content, "kind") === "CronJobList"
          ? rowsOf(within(content, "items"))
          : [content];
      for (const item of items) {
        if (!isRow(item)) continue;
        if (item.kind !== "CronJob") {
          findings.note(
            `${textOf(item.kind)} ${textOf(within(item, "metadata.name"))}`,
            "is no CronJob, and was passed over",
          );
          continue;
        }
        if (addCron(item, options, findings)) unzoned++;
      }
    }
  }
  if (unzoned > 0)
    findings.note(
      "",
      `${unzoned} without timeZone are taken to mean ${options.zone}`,
      "It is the zone of kube-controller-manager; say another with --zone.",
    );
  return findings;
}

/** @returns true if the times are in the zone of the options, because the manifest names none */
function addCron(item: Row, options: ImportOptions, findings: Findings): boolean {
  const namespace = textOf(within(item, "metadata.namespace"));
  const own = textOf(within(item, "metadata.name"));
  const source = namespace === "" || namespace === "default" ? own : `${namespace}/${own}`;
  const lost = (what: string, hint?: string) => findings.lost(source, what, hint);
  const spec = within(item, "spec");
  const read = readTimes(textOf(within(spec, "schedule")));
  const timeZone = textOf(within(spec, "timeZone"));
  if (read.named !== undefined && timeZone !== "") {
    findings.problem(source, `it names two zones: TZ=${read.named} and timeZone ${timeZone}`, "Leave one of them out.");
    return false;
  }
  const zone = read.named ?? (timeZone || options.zone);
  const work = within(spec, "jobTemplate.spec");
  const pod = within(item, podPath);
  const concurrency = textOf(within(spec, "concurrencyPolicy"));
  const isKnown = Object.hasOwn(overlaps, concurrency);
  const overlap = isKnown ? overlaps[concurrency] : undefined;
  if (!isKnown) lost(`concurrencyPolicy ${concurrency}`);
  const deadline = numberOf(within(spec, "startingDeadlineSeconds"));
  const limit = numberOf(within(work, "backoffLimit")) ?? defaultBackoffLimit;
  const active = numberOf(within(work, "activeDeadlineSeconds"));
  if (active !== undefined && limit > 0)
    findings.note(source, `activeDeadlineSeconds ${active} was for all tries together; here each try has as long`);
  const completions = numberOf(within(work, "completions")) ?? 1;
  const indexed = within(work, "completionMode") === "Indexed" && completions > 1;
  const shards = indexed && overlap === undefined ? { shards: completions } : undefined;
  if (indexed && !shards)
    lost(`${completions} indexed completions, which do not go with concurrencyPolicy ${concurrency}`);
  if (indexed && shards) findings.note(source, "JOB_COMPLETION_INDEX is run.shard here, which a command is not given");
  if (!indexed && completions > 1) lost(`${completions} completions; one run is one`);
  for (const [path, fields] of objects) {
    const object = path === "" ? item : within(item, path);
    if (isRow(object)) tellFields(object, fields, source, findings, path);
  }
  for (const [at, container] of rowsOf(within(pod, "containers")).entries())
    tellFields(container, containerFields, source, findings, `${podPath}.containers[${at}]`);
  const { command, remarks } = commandOf(pod);
  for (const [what, hint] of remarks) lost(what, hint);
  const labels = within(pod, "nodeSelector");
  if (isRow(labels))
    findings.note(source, "its nodeSelector became labels", "Start its workers with --label NAME=TEXT.");
  for (const name of ["successfulJobsHistoryLimit", "failedJobsHistoryLimit"])
    if (within(spec, name) !== undefined)
      lost(`${name}: the history of all tasks is kept for as long as retention says`);
  if (within(work, "ttlSecondsAfterFinished") !== undefined) lost("ttlSecondsAfterFinished: retention says how long");
  for (const name of [
    "podFailurePolicy",
    "successPolicy",
    "backoffLimitPerIndex",
    "podReplacementPolicy",
    "parallelism",
  ])
    if (within(work, name) !== undefined && !(name === "parallelism" && within(work, name) === 1)) lost(name);

  findings.add(
    source,
    source,
    {
      description: textOf(within(item, "metadata.annotations.description")),
      group: options.group,
      schedule: scheduleOf(read, zone, source, findings),
      overlap,
      // Kubernetes starts a late run until the deadline and skips it afterwards. Without a deadline, the task gets the default policy.
      misfire: deadline === undefined ? undefined : { policy: "skip", after: Math.max(1_000, deadline * 1_000) },
      retry: limit > 0 ? { attempts: limit + 1, ...tries } : undefined,
      timeout: active === undefined ? undefined : `${active}s`,
      route: shards,
      labels: isRow(labels)
        ? Object.fromEntries(Object.entries(labels).map(([name, value]) => [name, textOf(value)]))
        : undefined,
      command,
    },
    {
      suspended: within(spec, "suspend") === true,
      comment: imageOf(pod),
      times:
        read.period !== undefined
          ? { dialect: "@every", text: read.period }
          : { dialect: "kubernetes", text: read.cron, zone },
    },
  );
  return read.period === undefined && read.named === undefined && timeZone === "";
}

/** The parts of a schedule: the zone that its text names, and the period of `@every` or a cron. */
interface ReadTimes {
  named: string | undefined;
  period: string | undefined;
  cron: string;
}

function readTimes(text: string): ReadTimes {
  const [, named, cron = text] = /^(?:CRON_)?TZ=(\S+)\s+(.*)$/.exec(text) ?? [];
  const [, period] = /^@every\s+(\S+)$/.exec(cron) ?? [];
  return { named, period, cron };
}

function scheduleOf({ period, cron: text }: ReadTimes, zone: string, source: string, findings: Findings): unknown {
  if (period !== undefined) return { every: period };
  const cron = shortSteps(text);
  if (cron !== text) findings.note(source, `${text} means ${cron}: a step that is longer than its field`);
  return { cron: eitherDay(cron), zone };
}

/** The lowest and highest value of each cron field. */
const fieldRanges = [
  [0, 59],
  [0, 23],
  [1, 31],
  [1, 12],
  [0, 6],
] as const;

/** Replaces a step longer than its field's range by the first value alone. robfig/cron, which Kubernetes uses, accepts such a step. */
function shortSteps(expression: string): string {
  const fields = expression.trim().split(/\s+/);
  if (fields.length !== fieldRanges.length) return expression;
  return fields
    .map((field, at) =>
      field
        .split(",")
        .map((item) => {
          const [, first = "", step = ""] = /^(\*|\d+)(?:-\d+)?\/(\d+)$/.exec(item) ?? [];
          const [low, high] = fieldRanges[at] as readonly [number, number];
          return step !== "" && Number(step) > high - low ? (first === "*" ? String(low) : first) : item;
        })
        .join(","),
    )
    .join(" ");
}

const imageOf = (pod: unknown): string => {
  const image = textOf(within(rowsOf(within(pod, "containers"))[0], "image"));
  return image === "" ? "" : `ran in the image ${image}`;
};

/**
 * Returns the command of the pod's only container, for a worker that runs the command as a process on its machine. `command` is
 * undefined if the container names no command, or if the pod does not have exactly one container.
 */
function commandOf(pod: unknown): { command: Row | undefined; remarks: [string, string?][] } {
  const containers = rowsOf(within(pod, "containers"));
  const remarks: [string, string?][] = [];
  for (const name of [
    "initContainers",
    "volumes",
    "serviceAccountName",
    "affinity",
    "tolerations",
    "securityContext",
    "imagePullSecrets",
    "priorityClassName",
  ])
    if (within(pod, name) !== undefined)
      remarks.push([name, name === "volumes" ? "Files must be where the worker runs." : undefined]);
  // Kubernetes writes the old name `serviceAccount` beside the present one.
  if (within(pod, "serviceAccountName") === undefined && within(pod, "serviceAccount") !== undefined)
    remarks.push(["serviceAccount"]);
  const restart = textOf(within(pod, "restartPolicy"));
  if (!["", "Never"].includes(restart))
    remarks.push([`restartPolicy ${restart}`, "Each retry is an attempt, which any worker of the group may run."]);
  const dns = textOf(within(pod, "dnsPolicy"));
  if (!["", "ClusterFirst"].includes(dns)) remarks.push([`dnsPolicy ${dns}`, "Set it where the worker runs."]);
  if (containers.length !== 1) {
    remarks.push([
      `${containers.length} containers`,
      "Give a worker a handler of the task's name, or the task a command.",
    ]);
    return { command: undefined, remarks };
  }
  const [container = {}] = containers;
  for (const name of ["resources", "volumeMounts", "envFrom", "securityContext", "livenessProbe"])
    if (container[name] !== undefined)
      remarks.push([name, name === "envFrom" ? "Set these where the worker runs." : undefined]);
  const texts = (value: unknown) =>
    Array.isArray(value) ? value.map((one) => (typeof one === "string" ? one : textOf(one))) : [];
  const argv = [...texts(container.command), ...texts(container.args)];
  const image = textOf(container.image);
  if (texts(container.command).length === 0) {
    remarks.push([
      `the program of its image ${image}, which the manifest does not name`,
      "Add command: { argv: […] }.",
    ]);
    return { command: undefined, remarks };
  }
  remarks.push([
    `its image ${image}: a worker runs ${argv[0]} where it is`,
    `A worker must have it and allow it: --allow ${argv[0]}.`,
  ]);
  const env: Record<string, string> = {};
  for (const one of rowsOf(container.env)) {
    const name = textOf(one.name);
    if (one.valueFrom !== undefined)
      remarks.push([
        `env ${name}, which comes from a secret, a config map or the pod`,
        "Set it where the worker runs.",
      ]);
    else {
      const value = typeof one.value === "string" ? one.value : textOf(one.value);
      const why = isShellName(argv[0] ?? "") ? undefined : whyRefused(name, value);
      env[name] = value;
      if (why !== undefined)
        remarks.push([`env ${name}, which ${why}`, `A worker must allow it: --allow-env ${name}.`]);
    }
  }
  if (argv.some((word) => /\$\([A-Za-z_]\w*\)/.test(word)))
    remarks.push(["$(NAME) in its command is not replaced here", "Read the variable in the program."]);
  const cwd = textOf(container.workingDir);
  const command = { argv, ...(Object.keys(env).length > 0 ? { env } : {}), ...(cwd === "" ? {} : { cwd }) };
  return { command, remarks };
}
