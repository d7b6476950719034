/** When the device's connector did not listen, ascending; `toTs` null while it lasts. Absent: it always did. */
export type Listening = { gaps: readonly { fromTs: number; toTs: number | null }[] };
