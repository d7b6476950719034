import { hasMosquitto } from '../../test/support/mosquitto.ts';
import type { BenchContext, Row, RowResult } from '../bench-context.ts';
import { interleave, type Comparison, type Contender } from '../rounds.ts';
import { aedesContender, mosquittoContender, serviceContender, type Shape } from './contenders.ts';

const ours = 'Sensorium';

/** 1,000 devices with one message in flight each, acknowledged after the commit; half of them are evaluated. */
export const ingest: Row = {
  name: 'ingest',
  run: (context) =>
    runIngest(
      context,
      'ingest',
      { devices: context.options.devices, inFlight: 1, samplesPerMessage: 1 },
      [
        { metric: 'acksPerSecond', ours, beside: 'bare aedes', bound: 'at least', target: 0.75 },
        { metric: 'p99Ms', ours, beside: 'bare aedes', bound: 'at most', target: 2 },
      ],
    ),
};

export const pipelined: Row = {
  name: 'pipelined',
  run: (context) =>
    runIngest(
      context,
      'pipelined',
      { devices: context.options.pipelinedDevices, inFlight: 20, samplesPerMessage: 1 },
      [{ metric: 'acksPerSecond', ours, beside: 'bare aedes', bound: 'at least', target: 0.6 }],
    ),
};

async function runIngest(
  context: BenchContext,
  row: string,
  shape: Shape,
  beside: Comparison[],
): Promise<RowResult> {
  const contenders: Contender[] = [
    await serviceContender(context, row, shape),
    await aedesContender(context, shape),
  ];
  const comparisons = [...beside];
  const notes: string[] = [];
  if (hasMosquitto) {
    const batches = await mosquittoContender(context, `${row}_batches`, 'batch', shape);
    const single = await mosquittoContender(context, `${row}_single`, 'row', shape);
    contenders.push(batches, single);
    comparisons.push(
      { metric: 'rowsPerSecond', ours, beside: batches.name, bound: 'at least', target: 2 },
      { metric: 'rowsPerSecond', ours, beside: single.name, bound: 'at least', target: 20 },
    );
  } else notes.push('Mosquitto: not on this machine.');
  const { rounds } = context.options;
  return {
    row,
    work: `${shape.devices} devices, ${shape.inFlight} QoS 1 message(s) in flight each`,
    rounds: await interleave(contenders, rounds, context.tell),
    comparisons,
    notes,
  };
}
