/** Not the clock: a time of the chart, ms, as uPlot takes it and as ISO 8601 is written. */
// oxlint-disable-next-line no-restricted-globals -- a given time
export const dateOf = (ts: number): Date => new Date(ts);
