import type { ImportCandidate } from './candidate.ts';

/** More devices than this are not held by one transaction. */
const maxDevices = 1_000;

/** Candidates for one transaction. */
export class CandidateBatch {
  #candidates: ImportCandidate[] = [];
  #uuids = new Set<string>();

  get size(): number {
    return this.#candidates.length;
  }

  add(candidate: ImportCandidate): void {
    this.#candidates.push(candidate);
    this.#uuids.add(candidate.uuid);
  }

  isFull(rows: number): boolean {
    return this.#candidates.length >= rows || this.#uuids.size >= maxDevices;
  }

  /** Gives all of them, and starts an empty batch. */
  take(): ImportCandidate[] {
    const taken = this.#candidates;
    this.#candidates = [];
    this.#uuids = new Set();
    return taken;
  }
}
