import type { DeviceSpec } from './device-types.ts';
import type { HttpReceipt } from './http-body.ts';

export type FleetOptions = {
  host: string;
  port: number;
  /** The address that all of them come from; absent: any. */
  localAddress?: string;
  devices: DeviceSpec[];
  /** QoS 1 messages a device has under way without an acknowledgement, at most; 1 unless said. */
  inFlight?: number;
  /**
   * The payload of a device's next message; null: nothing from this device now (asked again at its
   * next acknowledgement, or by `kick`). Called right before the message is sent, `seq` counts from
   * 0 without gaps: the place to write down what is about to be sent.
   */
  payload: (device: number, seq: number) => Buffer | string | null;
  /** Messages a second of all devices together; absent: each as fast as it is acknowledged. */
  ratePerSecond?: number;
  /** Connections in the making at once; 500 unless said (a listener's queue is 511 by default). */
  connectsAtOnce?: number;
  /** Pause before a lost connection is made again (half of it to one and a half); absent: it stays lost. */
  reconnectDelayMs?: number;
  /** The same after a try that failed; `reconnectDelayMs` unless said. */
  retryDelayMs?: number;
  /** 600 unless said. Pings are sent where it is not 0. */
  keepaliveSeconds?: number;
  /** The acknowledgement of one message (PUBACK) arrived. */
  onAcknowledged?: (device: number, seq: number, latencyMs: number) => void;
  /** A request of a device was answered with 200. */
  onReceipt?: (device: number, receipt: HttpReceipt) => void;
  /** A message for a device arrived; its acknowledgement is sent right after this returns. */
  onReceived?: (device: number, topic: string, payload: Buffer) => void;
  onOnline?: (device: number) => void;
  /** A connection ended or was refused (`returnCode` of its CONNACK). */
  onOffline?: (device: number, reason: string, returnCode?: number) => void;
};

/** `lost`: connections that ended or were refused, other than by `close`. */
export type FleetCounts = { sent: number; acknowledged: number; online: number; lost: number };
