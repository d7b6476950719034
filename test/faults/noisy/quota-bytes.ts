/** What a recorded event takes at most: its own row, that for each of its senses, that of the live feed. */
export const eventBytes = 1_400;

/**
 * `quotas.eventsPerSecond`, its burst, and another one of messages that were read before: sense events that an
 * account records in that many seconds.
 */
export const eventsWithin = (seconds: number): number => 20_000 + 1_000 * seconds;

/**
 * An alarm that is closed again: its row twice, of some 1,000 bytes with a name of 200 characters (the first stays until
 * the table is vacuumed by itself), two changes for streams of 950, and entries in their indexes.
 */
export const alarmBytes = 4_400;

/** A message about an alarm, and what it changes of it: its own row twice, and one more of the alarm and of its changes. */
export const alarmMessageBytes = 3_500;

/** A change of an alarm that goes on, as streams are told it. */
export const alarmChangeBytes = 1_000;

/** So often streams are told that alarms of an account go on: a burst, and a tenth of `quotas.eventsPerSecond`. */
export const firingsWithin = (seconds: number): number => 10_000 + 100 * seconds;
