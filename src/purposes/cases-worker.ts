import { parentPort, workerData } from 'node:worker_threads';
import type { Purpose } from '../contract/purpose.ts';
import { casesOf } from '../engine/explore/cases.ts';
import { explore } from '../engine/explore/explore.ts';
import { findingsOf } from '../engine/explore/findings.ts';

/* The thread that explores one purpose, so that no request and no device's message waits for it: see cases.ts. */

const purposes = [workerData as Purpose];
const explored = explore(purposes);
const warnings = findingsOf(purposes, explored, { pathOf: () => '' });
// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
parentPort?.postMessage({ ...explored, warnings, cases: casesOf(purposes, explored) });
