/** From which schedulers tasks are imported, for those who ask what there is. */
export const imports = {
  quartz: {
    what: "Turn Quartz's XML scheduling data (and quartz.properties) into a file of tasks.",
    example: "carillon import quartz quartz.properties quartz_data.xml --zone Europe/Berlin --output tasks.yaml",
  },
  "xxl-job": {
    what: "Turn rows of XXL-JOB's xxl_job_info, as JSON, into a file of tasks.",
    example: "carillon import xxl-job xxl_job_info.json --zone Asia/Shanghai --output tasks.yaml",
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
} as const;
