import type { ChannelKind } from "../../../alarms/channel-kinds.ts";
import { type ChannelOptions, type Channels, kindOf } from "../../../settings/alarms/channels.ts";
import { dingtalk } from "./dingtalk.ts";
import { feishu } from "./feishu.ts";
import type { Format } from "./format.ts";
import { opsgenie } from "./opsgenie.ts";
import { pagerduty } from "./pagerduty.ts";
import { slack } from "./slack.ts";
import { teams } from "./teams.ts";
import { telegram } from "./telegram.ts";
import { wecom } from "./wecom.ts";

type PostedKind = Exclude<ChannelKind, "webhook" | "mail" | "command">;

const formats: { [Kind in PostedKind]: (channel: Channels[Kind]) => Format } = {
  slack,
  teams,
  dingtalk,
  feishu,
  wecom,
  telegram,
  pagerduty,
  opsgenie,
};

/** The format of a channel. @param channel of any kind except webhook, mail and command, which have no format */
export const formatOf = (channel: ChannelOptions): Format =>
  (formats[kindOf(channel) as PostedKind] as (channel: ChannelOptions) => Format)(channel);
