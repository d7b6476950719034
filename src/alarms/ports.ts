import type { Closing } from '../contract/alarm.ts';
import type { Announced } from '../contract/notification.ts';
import type { Sql } from '../db/sql.ts';
import type { PlannedAsk, RuleOptions } from './rules/draft.ts';
import type { Told } from './rules/settle.ts';

/** What people are to be told. */
export type Ask = Announced & Pick<PlannedAsk, 'device' | 'event' | 'actions' | 'name'>;

/** An alarm that closed; `lasted`: it stood for a state that the device was in. */
export type ClosedAlarm = {
  alarmId: number;
  closedBy: Closing;
  closedTs: number;
  lastedWithState: boolean;
};

/** What alarms ask of notifications, within their transaction. */
export type Telling = {
  tell: (tx: Sql, asks: readonly Ask[]) => Promise<Told[]>;
  dropPlanned: (tx: Sql, alarmIds: readonly number[]) => Promise<void>;
  tellOver: (tx: Sql, closed: readonly ClosedAlarm[]) => Promise<void>;
};

/** Puts off what is planned for devices until their mute ends (ms). */
export type PutOffPlanned = (
  tx: Sql,
  deviceIds: readonly number[],
  untilTs: number,
) => Promise<void>;

export type DecideDeps = Telling & {
  rules: RuleOptions;
  clock: () => number;
  /** How many more events of the account may be recorded now. */
  eventsLeft: (accountId: number) => number;
  /** Whether streams are told that an alarm goes on, which counts as so many events; takes them where they are. */
  mayTellFirings: (accountId: number, events: number) => boolean;
};

/** As how many recorded events the alarms count that a transaction opens, by account, once it is committed. */
export type Opened = ReadonlyMap<number, number>;
