import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';

/** As many as one stream can name. */
const most = 500;
/** A page that goes and the one that comes make one change. */
const settleMs = 50;

const users = new Map<symbol, readonly string[]>();
let timer: ReturnType<typeof setTimeout> | undefined;

/** Devices whose values are on the screen, sorted. */
export const watchedDevices = signal<readonly string[]>([]);

function settle(): void {
  clearTimeout(timer);
  timer = setTimeout(() => {
    const next = [...new Set([...users.values()].flat())].sort().slice(0, most);
    if (next.join() !== watchedDevices.peek().join()) watchedDevices.value = next;
  }, settleMs);
}

/** Has the stream carry the values of these devices while the component is there. */
export function useWatched(uuids: readonly string[]): void {
  useEffect(() => {
    const user = Symbol('watching');
    users.set(user, uuids);
    settle();
    return () => {
      users.delete(user);
      settle();
    };
  }, [uuids.join()]);
}
