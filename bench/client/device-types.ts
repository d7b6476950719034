import type { HttpReceipt, HttpWay } from './http-body.ts';

/** Who a device is and where it publishes. */
export type DeviceSpec = {
  clientId: string;
  username?: string;
  password?: string;
  /** Absent: it speaks MQTT 3.1.1. */
  version?: 5;
  /** It posts its messages instead. */
  http?: HttpWay;
  topic: string;
  /** Subscribed with QoS 1 after every connect; what arrives is acknowledged at once. */
  subscriptions?: string[];
};

export type DeviceSettings = {
  host: string;
  port: number;
  /** The address to come from; absent: any. */
  localAddress?: string | undefined;
  keepaliveSeconds: number;
  /** QoS 1 messages sent and not acknowledged, at most. */
  inFlight: number;
};

/** What a device tells its fleet. Called synchronously, so a record made there is made before the send. */
export type DeviceHooks = {
  online: () => void;
  /** The connection ended, or was never made; `returnCode` of a CONNACK that refused it. */
  offline: (reason: string, returnCode?: number) => void;
  /** The next message to send, or null for nothing now; lets no device send. `seq` counts from 0 without gaps. */
  next: (seq: number) => Buffer | string | null;
  acknowledged: (seq: number, latencyMs: number) => void;
  received: (topic: string, payload: Buffer) => void;
  /** Right before what was answered over HTTP counts as acknowledged. */
  receipt?: (receipt: HttpReceipt) => void;
};

export type Device = {
  open: () => void;
  /** Sends until the window is full or there is nothing more to send. Says how many went out. */
  fill: (atMost?: number) => number;
  ping: () => void;
  pending: () => number;
  isOnline: () => boolean;
  /** A clean DISCONNECT, or a reset as a lost link makes it. */
  close: (how: 'disconnect' | 'reset') => void;
};
