/** A measurement as the table keeps it: a position has its latitude in `val`. */
export type MeasurementRow = {
  deviceId: number;
  sId: string;
  ts: number;
  val: number;
  long: number | undefined;
};
