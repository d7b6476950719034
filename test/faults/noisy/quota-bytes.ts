/** How much a recorded event takes at most: its own row, one for each of its senses, and one of the live feed. */
export const eventBytes = 1_400;

/**
 * How many sense events an account records in that many seconds: `quotas.eventsPerSecond`, its burst, and a second
 * burst of messages that were read before.
 */
export const eventsWithin = (seconds: number): number => 20_000 + 1_000 * seconds;

/**
 * An alarm that is closed again: its row twice, of some 1,000 bytes with a name of 200 characters (the first version
 * stays until autovacuum), two changes for streams of 950, and entries in their indexes.
 */
export const alarmBytes = 4_400;

/** A message about an alarm, and what it changes: its row twice, and new versions of the alarm and its changes. */
export const alarmMessageBytes = 3_500;

/** A change of an alarm that continues, as sent to streams. */
export const alarmChangeBytes = 1_000;

/** How often streams are told that alarms of an account continue: a burst, and a tenth of `quotas.eventsPerSecond`. */
export const firingsWithin = (seconds: number): number => 10_000 + 100 * seconds;
