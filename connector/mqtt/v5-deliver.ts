import type { Encoded } from '../device/downlink-sender.ts';

/** A text for a display is of use for a day. */
const displayLifeMs = 86_400_000;

/**
 * For how many seconds a message is still of use at `nowMs`, since the epoch; null: there is no limit. What is
 * left goes with the message, so that a broker or gateway behind the device counts on. [MQTT-3.3.2-6]
 */
export function expirySecondsOf({ topic, body }: Encoded, nowMs: number): number | null {
  if (topic !== 'display') return null;
  const { ts } = JSON.parse(body.toString()) as { ts?: unknown };
  return typeof ts === 'number' ? Math.ceil((ts + displayLifeMs - nowMs) / 1_000) : null;
}
