import type { DeviceSpec } from './device-types.ts';
import type { HttpReceipt } from './http-body.ts';

export type FleetOptions = {
  host: string;
  port: number;
  /** The local address of all of them; absent: any. */
  localAddress?: string;
  devices: DeviceSpec[];
  /** The most QoS 1 messages of a device without an acknowledgement; default 1. */
  inFlight?: number;
  /**
   * The payload of a device's next message; null: nothing from this device now (asked again at its next
   * acknowledgement, or by `kick`). Called right before the message is sent, so it can record what is about to be sent.
   * `seq` counts from 0 without gaps.
   */
  payload: (device: number, seq: number) => Buffer | string | null;
  /** Messages per second of all devices together; absent: each as fast as it is acknowledged. */
  ratePerSecond?: number;
  /** Connections being opened at once; default 500 (a listener's queue is 511 by default). */
  connectsAtOnce?: number;
  /** Pause before a lost connection is reopened (randomly from half to one and a half of it); absent: it stays lost. */
  reconnectDelayMs?: number;
  /** The same after a failed attempt; default `reconnectDelayMs`. */
  retryDelayMs?: number;
  /** Pauses for at least as long as an answer over HTTP asks (`Retry-After`). */
  obeysRetryAfter?: boolean;
  /** Default 600. Sends pings unless it is 0. */
  keepaliveSeconds?: number;
  /** The acknowledgement of one message (PUBACK) arrived. */
  onAcknowledged?: (device: number, seq: number, latencyMs: number) => void;
  /** A request of a device was answered with 200. */
  onReceipt?: (device: number, receipt: HttpReceipt) => void;
  /** A message for a device arrived. It is acknowledged right after this returns. */
  onReceived?: (device: number, topic: string, payload: Buffer) => void;
  onOnline?: (device: number) => void;
  /** A connection ended or was refused (`returnCode` of its CONNACK). */
  onOffline?: (device: number, reason: string, returnCode?: number) => void;
};

/** `lost`: connections that ended or were refused other than by `close`. */
export type FleetCounts = { sent: number; acknowledged: number; online: number; lost: number };
