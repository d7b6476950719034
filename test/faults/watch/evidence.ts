import type { Role } from './roles.ts';

/** A message of a watched device, by the service's time (ms). `ackedTs` null: not acknowledged yet. */
export type Message = { ts: number; ackedTs: number | null };

/** A device, what it sent, and what the database has of it. */
export type Watched = {
  uuid: string;
  role: Role;
  /** When its profile was sent, and when it was installed: its first silence begins in between. */
  installedTs: number;
  messages: Message[];
  /** Times of its recorded firings. */
  firings: number[];
  alarms: { alarmId: number; sinceTs: number; closedBy: string | null }[];
};

/** What the webhook received, one entry a delivery. */
export type Told = { webhookId: string; type: string; alarmId: number };

/** When a connector did not listen, as far as the service knows. */
export type KnownGap = { connectorId: number; fromTs: number; toTs: number };

/**
 * `nowTs`: when it was read. `waiting`: messages still to be delivered. `connectors`: how many the devices may be
 * connected to. Which one a device used at what time is not known.
 */
export type Evidence = {
  nowTs: number;
  devices: Watched[];
  told: Told[];
  waiting: number;
  gaps: KnownGap[];
  connectors: number;
};
