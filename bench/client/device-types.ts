import type { HttpReceipt, HttpWay } from './http-body.ts';

/** A device's identity, and where it publishes. */
export type DeviceSpec = {
  clientId: string;
  username?: string;
  password?: string;
  /** Absent: MQTT 3.1.1. */
  version?: 5;
  /** Set if it posts its messages over HTTP instead. */
  http?: HttpWay;
  topic: string;
  /** Subscribed with QoS 1 after every connect. Messages are acknowledged at once. */
  subscriptions?: string[];
};

export type DeviceSettings = {
  host: string;
  port: number;
  /** The local address; absent: any. */
  localAddress?: string | undefined;
  keepaliveSeconds: number;
  /** The most QoS 1 messages without an acknowledgement. */
  inFlight: number;
};

/** What a device reports to its fleet. Called synchronously, so a record written there exists before the send. */
export type DeviceHooks = {
  online: () => void;
  /**
   * The connection ended, or was never opened. `returnCode` is that of a CONNACK that refused it, or the status of an
   * answer over HTTP, which may ask for a pause (`Retry-After`).
   */
  offline: (reason: string, returnCode?: number, retryAfterSeconds?: number) => void;
  /**
   * The next message to send, or null for nothing now. May not make a device send. `seq` counts from 0 without gaps.
   */
  next: (seq: number) => Buffer | string | null;
  acknowledged: (seq: number, latencyMs: number) => void;
  received: (topic: string, payload: Buffer) => void;
  /** Called right before what was answered over HTTP counts as acknowledged. */
  receipt?: (receipt: HttpReceipt) => void;
};

export type Device = {
  open: () => void;
  /** Sends until the window is full or there is nothing more to send. Returns how many messages went out. */
  fill: (atMost?: number) => number;
  ping: () => void;
  pending: () => number;
  isOnline: () => boolean;
  /** A clean DISCONNECT, or a reset like that of a lost link. */
  close: (how: 'disconnect' | 'reset') => void;
};
