import type { RefObject } from 'preact';
import { useLayoutEffect, useState } from 'preact/hooks';

/** How wide an element is, px; `first` until that is known. */
export function useWidth(element: RefObject<HTMLElement | null>, first: number): number {
  const [width, setWidth] = useState(first);
  useLayoutEffect(() => {
    const { current: at } = element;
    if (!at) return undefined;
    const resize = new ResizeObserver(() => setWidth(at.clientWidth));
    resize.observe(at);
    return () => resize.disconnect();
  }, []);
  return width;
}
