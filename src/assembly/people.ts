import { createDecideAlarms } from '../alarms/decide-alarms.ts';
import { senseKey } from '../alarms/decide.ts';
import { forgetAlarms } from '../alarms/forget.ts';
import { listAlarmsNow, lockAlarms, noteTold, takeBack } from '../alarms/outcome.ts';
import type { ClosedAlarm, DecideDeps, Telling } from '../alarms/ports.ts';
import { type AlarmRouteDeps, alarmRoutes } from '../alarms/routes.ts';
import { wakeAlarms } from '../alarms/timer/queries.ts';
import { startAlarmTimer, type TimerOptions } from '../alarms/timer/timer.ts';
import { walkChangedAlarms } from '../alarms/walk-changed.ts';
import type { Sql } from '../db/sql.ts';
import type { OnConfigured } from '../devices/configuration-routes.ts';
import type { Chore } from '../history/upkeep.ts';
import type { Route } from '../http/route.ts';
import { listClockTimes } from '../ingest/save-states.ts';
import { findNewest } from '../measurements/newest.ts';
import type { AlarmPort } from '../notifications/alarm-port.ts';
import { listDeliveries } from '../notifications/list-deliveries.ts';
import type { Notifications } from '../notifications/notifications.ts';
import { dropPlanned, putOffPlanned } from '../notifications/planned.ts';
import { tellOver } from '../notifications/tell-over.ts';
import { createFiringsRate } from '../quotas/firings-rate.ts';
import type { Shared } from './shared.ts';

/** For a process without devices: nothing fires there, alarms only close. */
const noFirings: Telling['tell'] = async () => {
  throw new Error('Nobody is told of firings in this process.');
};

function rulesOf({ config }: Shared): DecideDeps['rules'] {
  const { ringMaxAgeMs } = config.ingest;
  return { ringMaxAgeMs, reportedForMs: config.alarms.reportedForMs };
}

/** What messages need of the alarms that they are about. */
export function alarmPortOf({ bus }: Pick<Shared, 'bus'>): AlarmPort {
  return {
    listAlarmsNow,
    lockAlarms,
    noteTold,
    takeBack,
    onChanged: (accountId) => bus.publish('events', { accountIds: [accountId], deviceIds: [] }),
  };
}

const timerEveryMs = 1_000;

const findNewestTs: TimerOptions['findNewestTs'] = async (tx, senses) => {
  const times = await listClockTimes(tx, await findNewest(tx, senses));
  return new Map(times.map(({ ts, ...sense }) => [senseKey(sense), ts]));
};

/** Decides on alarms where devices are heard, and closes those whose time is over. */
export function startAlarms(
  shared: Shared,
  { outbox, eventsLeft }: { outbox: Notifications; eventsLeft: DecideDeps['eventsLeft'] },
) {
  const { db, bus, clock, log, releases } = shared;
  const { tell, dropPlanned, tellOver } = outbox;
  const telling = { tell, dropPlanned, tellOver };
  const alarmsLog = log.child({ component: 'alarms' });
  const timer = startAlarmTimer({
    ...telling,
    db,
    clock,
    rules: rulesOf(shared),
    pollIntervalMs: timerEveryMs,
    findNewestTs,
    onChanged: (changed) => bus.publish('events', changed),
    onError: (err) =>
      alarmsLog.warn(
        { event: 'alarms.untimed', err },
        'Alarms that are due could not be announced; it is tried again.',
      ),
  });
  releases.add('timer of alarms', () => timer.close());
  return createDecideAlarms({
    ...telling,
    rules: rulesOf(shared),
    clock: shared.clock,
    eventsLeft,
    mayTellFirings: createFiringsRate(shared.limitsOf, shared.monotonicClock),
  });
}

/** What routes change of alarms, and of devices that have some. */
export function createAlarmsOfRoutes(shared: Shared) {
  const { limitsOf: quotasOf, clock } = shared;
  const telling = {
    tell: noFirings,
    dropPlanned,
    putOffPlanned,
    tellOver: (tx: Sql, closed: readonly ClosedAlarm[]) =>
      tellOver(tx, closed, { quotasOf, nowMs: clock() }),
  };
  const decideAlarms = createDecideAlarms({
    ...telling,
    rules: rulesOf(shared),
    clock: shared.clock,
    // No route opens one.
    eventsLeft: () => 0,
    mayTellFirings: () => true,
  });
  const onConfigured: OnConfigured = async (tx, device, sIds, arrivedTs) => {
    await decideAlarms(tx, [{ kind: 'configuration', device, sIds, arrivedTs }]);
  };
  const { db, bus } = shared;
  const listRoutes = (getDeviceId: AlarmRouteDeps['getDeviceId']): Route[] =>
    alarmRoutes({ db, bus, telling, getDeviceId, findNewest, listDeliveries });
  const acting = { db, bus, telling };
  return { listRoutes, onConfigured, wake: wakeAlarms, walkAlarms: walkChangedAlarms, acting };
}

const dayMs = 86_400_000;

/** A chore of the upkeep: closed alarms are kept as long as events. */
export function forgetOldAlarms({ db }: Shared): Chore {
  return async (nowTs, { kept, signal }) => {
    if (kept.eventsDays === Infinity) return;
    await forgetAlarms(db, nowTs - kept.eventsDays * dayMs, signal);
  };
}
