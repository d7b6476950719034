/**
 * How many of a device's rejections of one minute are kept one by one, as far as this process knows:
 * one more than `keptPerMinute` once the device was told that further ones are counted only.
 */
export type RecentRejections = { minute: number; kept: number };

/** Rejections of one device and minute that are kept one by one; further ones are a number. */
export const keptPerMinute = 60;

const minuteMs = 60_000;

/** What the minute of a message has so far. */
export function recentRejectionsAt(
  recent: RecentRejections | null,
  arrivedTs: number,
): RecentRejections {
  const minute = Math.floor(arrivedTs / minuteMs);
  return recent?.minute === minute ? recent : { minute, kept: 0 };
}

/** Names the row that counts a device's further rejections of a minute: the same one in every process. */
export function minuteId(minute: number): string {
  return `00000000-0000-8000-8000-${minute.toString(16).padStart(12, '0')}`;
}
