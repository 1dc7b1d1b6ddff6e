/** The kinds of channels that alarms are sent by. */
export const channelKindNames = [
  "webhook",
  "mail",
  "slack",
  "teams",
  "dingtalk",
  "feishu",
  "wecom",
  "telegram",
  "pagerduty",
  "opsgenie",
  "command",
] as const;
export type ChannelKind = (typeof channelKindNames)[number];
