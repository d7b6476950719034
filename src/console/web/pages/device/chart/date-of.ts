/** Not the clock: a time of the chart, ms, as uPlot takes it and as ISO 8601 is written. */
export const dateOf = (ts: number): Date => new Date(ts);
