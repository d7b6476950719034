import type { Sql } from '../db/sql.ts';

/** What a message that goes out says of its alarm as it is by now. */
export type AlarmNow = {
  alarmId: number;
  acknowledgedTs: number | null;
  snoozedUntilTs: number | null;
  closedTs: number | null;
};

/** What messages need of the alarms that they are about; both rooms are brought together by assembly/. */
export type AlarmPort = {
  /** Those that still exist. */
  listAlarmsNow: (sql: Sql, alarmIds: readonly number[]) => Promise<AlarmNow[]>;
  /** Nobody else settles messages of these alarms, nor changes them, until the transaction ends. */
  lockAlarms: (tx: Sql, alarmIds: readonly number[]) => Promise<void>;
  /** A message of this announcement reached somebody; told again it changes nothing. */
  noteTold: (tx: Sql, alarmId: number, of: OfAnnouncement) => Promise<void>;
  /** None of the messages of this announcement did, and none is left. */
  takeBack: (tx: Sql, alarmId: number, of: OfAnnouncement) => Promise<void>;
  /** Alarms of this account may have changed, and that is committed. */
  onChanged: (accountId: number) => void;
};

/** `nowTs`: when its last message ended, ms. */
export type OfAnnouncement = { announcement: number; nowTs: number };
