// The only file of the page that reaches out of it, and for types alone.
export type { SessionView } from '../../session-routes.ts';
export type {
  DescribedDevice,
  DeviceList,
  OneDevice,
  Registration,
  RejectionList,
} from '../../../devices/schema.ts';
export type { RefusedLoginList, RemovedLoginList } from '../../../devices/refused-login-schema.ts';
export type { LabelList } from '../../../devices/list-labels.ts';
export type { DeviceAction } from '../../../devices/action-schema.ts';
export type { Job, JobList } from '../../../jobs/schema.ts';
export type { Configuration, Sense } from '../../../contract/configuration.ts';
export type { Purpose } from '../../../contract/purpose.ts';
export type { BucketView, LatestView, MeasurementView } from '../../../measurements/schema.ts';
export type { EventView } from '../../../events/schema.ts';
export type { ListedAlarm } from '../../../alarms/schema.ts';
export type { NotificationOutcome } from '../../../notifications/schema.ts';
export type { Description } from '../../../engine/describe-evaluation.ts';
export type { SessionEntry as ListedSession } from '../../../accounts/schema.ts';
export type { Contacts, ContactsUpdate, TrialAnswer } from '../../../contacts/schema.ts';
export type { Key as ApiKey, MadeKey, NewKey } from '../../../api-keys/schema.ts';
export type { UsageList } from '../../../quotas/schema.ts';
export type { AuditEntry, AuditResponse as AuditList } from '../../../audit/schema.ts';
