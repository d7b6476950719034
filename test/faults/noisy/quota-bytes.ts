/** What a recorded event takes at most: its own row, that for each of its senses, that of the live feed. */
export const eventBytes = 1_400;

/**
 * `quotas.eventsPerSecond`, its burst, and another one of messages that were read before: sense events that an
 * account records in that many seconds.
 */
export const eventsWithin = (seconds: number): number => 20_000 + 1_000 * seconds;

/** An alarm that is closed again, with its changes and the messages that quotas allow. */
export const alarmBytes = 4_000;
