import { setFlagsFromString } from 'node:v8';

/**
 * Keeps V8 from making objects old from birth where most of their kind lived long enough to be copied
 * once. A message lives until its commit, which is as long: its objects would stay until the next full
 * collection, and with them whatever they point to. Half of what was young then survived, and the
 * process took half as much memory again. To be called before anything is created.
 */
export function keepMessagesYoung(): void {
  setFlagsFromString('--no-allocation-site-pretenuring');
}
