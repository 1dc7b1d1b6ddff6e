import { isCarillonError, messageOf } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { alarmAdvice, alarmPlaces } from "../../settings/alarms/alarm-places.ts";
import type { Settings } from "../../settings/settings.ts";
import type { Store } from "../../store/store.ts";

/**
 * Logs, once at the start, if alarms of the settings' rules may be missed: no process that may lead has alarm channels, or only some of
 * these processes have them. A leader without channels evaluates no alarm rules of the settings.
 */
export async function tellAlarmPlaces(store: Store, settings: Settings, log: Log): Promise<void> {
  const { scheduler, observer, alarms } = settings;
  const leads = scheduler && !observer;
  // No query is needed: a worker without channels changes nothing, and a process that may lead and has channels needs no warning.
  if (leads === (alarms !== null)) return;
  try {
    const { kind, nodes } = alarmPlaces((await store.sessions.members()).members);
    if (kind === "elsewhere")
      log.warn(
        { nodes, hint: alarmAdvice.elsewhere },
        "alarms are configured only in processes that never lead: nobody looks for them, and nothing is sent",
      );
    if (kind === "partly")
      log.warn(
        { nodes, hint: alarmAdvice.partly },
        "some processes that may lead have no channel for alarms: while one of them leads, nothing is sent",
      );
    if (kind === "nobody")
      log.info({ hint: alarmAdvice.nobody }, "no process has a channel for alarms: nobody is told of failures");
  } catch (error) {
    if (!isCarillonError(error)) throw error;
    log.debug({ error: messageOf(error) }, "where alarms are configured could not be read");
  }
}
