import { ReferenceEngine } from './reference/engine.ts';
import type { StartEngine } from './run-vector.ts';

/** The engine of test/engine/reference. */
export const startReference: StartEngine = (purposes, arrivedTs, gaps) =>
  new ReferenceEngine(purposes, arrivedTs, gaps);
