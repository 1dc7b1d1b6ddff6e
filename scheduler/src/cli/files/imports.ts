/** The schedulers from which tasks can be imported, with their help texts. */
export const imports = {
  quartz: {
    what: "Turn Quartz's XML scheduling data (and quartz.properties) or a dump of its tables into a file of tasks.",
    example: "carillon import quartz quartz.properties quartz_data.xml --zone Europe/Berlin --output tasks.yaml",
  },
  "xxl-job": {
    what: "Turn a dump of XXL-JOB's database, or rows of its xxl_job_info as JSON, into a file of tasks.",
    example:
      "mysqldump xxl_job xxl_job_group xxl_job_info | carillon import xxl-job - --zone Asia/Shanghai --output tasks.yaml",
  },
  kubernetes: {
    what: "Turn manifests of Kubernetes CronJobs into a file of tasks.",
    example: "kubectl get cronjobs -A -o yaml | carillon import kubernetes - > tasks.yaml",
  },
  bullmq: {
    what: "Turn what BullMQ's getJobSchedulers() gives, as JSON, into a file of tasks.",
    example: "carillon import bullmq schedulers.json --output tasks.yaml",
  },
  "pg-boss": {
    what: "Turn rows of pg-boss's table of schedules, as JSON, into a file of tasks.",
    example: "carillon import pg-boss schedules.json --output tasks.yaml",
  },
  "solid-queue": {
    what: "Turn Solid Queue's recurring.yml into a file of tasks.",
    example: "carillon import solid-queue config/recurring.yml --output tasks.yaml",
  },
  "sidekiq-cron": {
    what: "Turn Sidekiq-cron's schedule.yml into a file of tasks.",
    example: "carillon import sidekiq-cron config/schedule.yml --output tasks.yaml",
  },
  vercel: {
    what: "Turn the crons of vercel.json into a file of tasks.",
    example: "carillon import vercel vercel.json --output tasks.yaml",
  },
  "github-actions": {
    what: "Turn the schedules of GitHub's workflows into a file of tasks.",
    example: "carillon import github-actions .github/workflows/*.yml --output tasks.yaml",
  },
  eventbridge: {
    what: "Turn schedules of Amazon EventBridge Scheduler, as JSON, into a file of tasks.",
    example: "aws scheduler get-schedule --name NAME | carillon import eventbridge - > tasks.yaml",
  },
  systemd: {
    what: "Turn systemd's timers and their services into a file of tasks.",
    example: "systemctl cat backup.timer backup.service | carillon import systemd - > tasks.yaml",
  },
  celery: {
    what: "Turn Celery beat's periodic tasks, as JSON, into a file of tasks.",
    example: "manage.py dumpdata django_celery_beat | carillon import celery - > tasks.yaml",
  },
  graphile: {
    what: "Turn graphile-worker's crontab into a file of tasks.",
    example: "carillon import graphile crontab --output tasks.yaml",
  },
  apscheduler: {
    what: "Turn APScheduler's entries, as Flask-APScheduler gives them as JSON, into a file of tasks.",
    example: "curl HOST/scheduler/jobs | carillon import apscheduler - > tasks.yaml",
  },
  dkron: {
    what: "Turn Dkron's entries, as its API gives them, into a file of tasks.",
    example: "curl HOST/v1/jobs | carillon import dkron - > tasks.yaml",
  },
  powerjob: {
    what: "Turn a dump of PowerJob's table of entries, or its rows as JSON, into a file of tasks.",
    example: "carillon import powerjob dump.sql --zone Asia/Shanghai --output tasks.yaml",
  },
  rundeck: {
    what: "Turn an export of Rundeck, as YAML or XML, into a file of tasks.",
    example: "carillon import rundeck export.yaml --output tasks.yaml",
  },
  jenkins: {
    what: "Turn the timers of Jenkins projects (config.xml) into a file of tasks.",
    example: "carillon import jenkins jobs/*/config.xml --output tasks.yaml",
  },
} as const;
