import type { changes as en } from '../en/changes.ts';

export const changes: Record<keyof typeof en, string> = {
  limit: 'Grenze von {name} {before} → {after}',
  delay: 'Dauer bei {name} {before} → {after}',
  silence: 'Stille von {name} {before} → {after}',
  became: '{before} → {after}',
  smsText: 'Text der SMS „{before}“ → „{after}“',
  now: 'neu: {said}',
  noLonger: 'nicht mehr: {said}',
  eventComes: 'Neues Ereignis „{event}“: {said}',
  eventGoes: 'Nicht mehr: das Ereignis „{event}“.',
  eventName: 'Das Ereignis „{before}“ heißt „{after}“.',
  stateComes: 'Neuer Zustand „{state}“.',
  stateGoes: 'Nicht mehr: der Zustand „{state}“ und seine Ereignisse.',
  stateName: 'Der Zustand „{before}“ heißt „{after}“.',
  everywhere: 'Die Ereignisse von „{state}“ gelten in jedem Zustand.',
  notEverywhere: 'Die Ereignisse von „{state}“ gelten nur in diesem Zustand.',
  begins: 'Sie beginnt im Zustand „{state}“.',
  ruleName: 'Die Regel „{before}“ heißt „{after}“.',
  other: 'Etwas, das nur das JSON sagt.',
};
